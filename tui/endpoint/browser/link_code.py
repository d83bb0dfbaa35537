"""The link to a page as a QR code, in characters of a terminal. segno makes it, of the extra `linkgauge[http]`."""

import io
from typing import Final

_QUIET: Final = 2  # modules around the code; a phone needs no more on a plain background


def code_lines(link: str) -> list[str]:
    """Return the lines of a QR code, two rows in each. Its light modules are in the colour of the text.

    Print it in white on black: readers of light on dark are rare.
    """
    import segno

    out = io.StringIO()
    segno.make(link, error="l", micro=False).terminal(out, border=_QUIET, compact=True)
    return out.getvalue().splitlines()
