"""One file a command: the visible list."""
