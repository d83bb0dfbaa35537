"""Stored runs: the list of runs, one run in the gauges, runs compared."""
