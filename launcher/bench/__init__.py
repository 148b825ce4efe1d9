"""Benchmarks: loads to command lines, figures to verdicts, verdicts to the next load."""
