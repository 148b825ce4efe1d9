"""Plan and apply."""
