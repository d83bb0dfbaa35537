"""The commands: a module for each, with its arguments, the checks of them, and a call of what carries it out.

A function's docstring is the command's help. At import they may load only Click, `engine/model`, `..options`,
`..output` and light parts of `tui/words` and `tui/session`; `..main` registers them. Public: the functions.
"""
