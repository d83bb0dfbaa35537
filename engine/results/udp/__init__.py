"""Datagrams in the results of a run: their sums, and where and in which pattern they were lost.

Pure. It imports engine/model; accumulators, summary, JSON and the diagnosis read it.
"""
