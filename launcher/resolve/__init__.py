"""Nouns to what must be true: pure."""
