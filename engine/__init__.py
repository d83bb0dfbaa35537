"""The engine: everything that touches a socket, a clock or a CPU counter, and the pure protocol beneath it.

It imports the standard library, uvloop and psutil, and nothing of presets or tui. From the lowest package up:
model, protocol, host, metering, workloads, workers and control, results, far, ssh, near and lab, iperf3.
"""
