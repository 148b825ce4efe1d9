"""Two profiles for one fleet: what differs, and what that means for this configuration; pure."""
