"""What is counted in an interval: samples of both ends, the kernel's counters of a session, latency histograms.

Pure. Imports engine/model alone.
"""
