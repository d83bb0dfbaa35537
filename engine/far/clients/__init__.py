"""The clients of an endpoint: one that is admitted (admitted_client), its way to a run (client_service), its turn.

The turns of all tests say which may run beside which, who waits, and what the others carry.
"""
