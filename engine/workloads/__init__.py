"""TODO engine/workloads."""
