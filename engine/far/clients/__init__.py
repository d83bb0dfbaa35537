"""The clients of an endpoint: their admission (admission), an admitted one (admitted_client), and its turn (turns).

Turns decide which tests may run side by side and which wait, and tell what the others carry.
"""
