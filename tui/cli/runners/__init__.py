"""What the commands carry out: a test, a sweep, a check by steps of a rate, a mesh, a watch, an endpoint.

Each stops at a signal, and prints its result. May import all that the command line may.
"""
