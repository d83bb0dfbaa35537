"""Plots over the time of a run: rates, TCP's values, and latency under load."""
