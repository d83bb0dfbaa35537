"""A line to type into."""

from textual.reactive import reactive
from textual.widgets import Input


class TextField(Input):
    """An input whose cursor stands still: blinking is bytes over SSH, and a screen that changes by itself."""

    cursor_blink = reactive(False, init=False)
