"""Results as text for a terminal, and as JSON documents if the command needs one. Prints nothing.

May import `tui/words`, `presets`, `engine/model`, `engine/results` and Rich. `table` prints every table.
"""
