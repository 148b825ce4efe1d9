"""Real hosts on this machine."""
