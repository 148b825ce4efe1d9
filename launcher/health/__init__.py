"""Is it ready, does it serve."""
