"""Line breaks between words, and never at a no-break space, which groups the digits of a number.

Rich, which also wraps the lines of Textual, breaks at every Unicode space: `9 415 Mb/s` could end a line with 9
and begin the next with 415.
"""

import re
from typing import Final

from rich import _wrap

_WORD: Final = re.compile(r"[^\S\xa0]*[\S\xa0]+[^\S\xa0]*")


def respect_no_break_spaces() -> None:
    """Have Rich and Textual wrap lines at other spaces only."""
    _wrap.re_word = _WORD
