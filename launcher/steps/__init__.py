"""One file a kind: step to probes, step and facts to changes; pure."""
