"""The screens of the apps: each composes widgets, runs background work and handles the keys of the registry.

They import widgets, actions, services and state; the apps import them, never the reverse. Public are `base_screen`,
`stored_run_screen` and, by package, `run`, `history`, `sweep`, `endpoint` and `dialogs`.
"""
