"""Plots over the time of a run: rates, the values of TCP, latency under load, and several runs in one plot."""
