"""Files to nouns."""
