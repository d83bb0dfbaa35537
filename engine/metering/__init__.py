"""Counters in shared memory, and the samples that are made of them.

Imports engine/host, engine/protocol and engine/model. Public names: `shared_counters` (SharedCounters: workers
write, the process that draws reads) and `sampler` (Sampler: one end's samples of a run).
"""
