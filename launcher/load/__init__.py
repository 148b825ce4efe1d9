"""Files to nouns: inventory, configs/ and roles/ become a Wish, or all their Problems at once."""
