"""The command line: it reads arguments, runs a test, a sweep, the app or an endpoint, and prints the result.

May import every package below; but a command imports what it needs only when it runs, so that `--help` is fast.
Public: `main` (run_command_line), `options` (the groups of options), `click_extension`, `output`, `termination`,
`runners`, `terminal_app`.
"""
