"""The work of the commands without an app: a test, a sweep, a check by steps of a rate.

Each runs its tests with a live line, stops them at a signal, and prints their result. May import all that the
command line may. Public: `run_test`, `sweep_runner`, `step_runner`.
"""
