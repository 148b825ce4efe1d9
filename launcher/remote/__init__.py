"""The only way to a host."""
