"""The clients of an endpoint: whether one is admitted (admission), what it is then (admitted_client), and its turn.

The turns of all tests say which may run beside which, who waits, and what the others carry.
"""
