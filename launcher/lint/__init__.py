"""What is known, applied to launches: conditions, quantities and the findings of rules; asks no host."""
