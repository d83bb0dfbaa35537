"""The clients of an endpoint: their admission, an admitted client, its current run and its turn (turns).

Turns decide which tests may run side by side and which wait, and tell what the others carry.
"""
