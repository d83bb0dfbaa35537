"""Texts that the engine composes for the user: the sentences of warnings, and commands to paste into a shell."""
