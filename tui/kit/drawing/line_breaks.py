"""Line breaks between words, but not at no-break spaces, which group the digits of a number.

Rich also wraps the lines of Textual, and breaks at every Unicode space: `9 415 Mb/s` could end a line with 9 and
begin the next with 415.
"""

import re
from typing import Final

from rich import _wrap

_WORD: Final = re.compile(r"[^\S\xa0]*[\S\xa0]+[^\S\xa0]*")


def respect_no_break_spaces() -> None:
    """Make Rich and Textual wrap lines only at other spaces."""
    _wrap.re_word = _WORD
