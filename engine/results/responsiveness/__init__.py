"""Latency under load: the results of a responsiveness test, its grade, and its round trips a minute.

Pure. `recorder` takes a run's events, and `result` has the results; `grade` and `round_trips` are the two scales.
"""
