"""Latency under load: what a responsiveness test measured, its grade, and its round trips a minute.

Pure. `recorder` takes a run's events, `result` has what it finds; `grade` and `round_trips` are the two scales.
"""
