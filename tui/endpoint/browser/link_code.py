"""The link to a page as a QR code, in characters of a terminal. segno makes it, of the extra `linkgauge[http]`."""

import io

_QUIET = 2  # modules around the code; a phone needs no more on a plain background


def code_lines(link: str) -> list[str]:
    """Return the lines of a QR code that is half as high as it is wide in characters; dark on light."""
    import segno

    out = io.StringIO()
    segno.make(link, error="l", micro=False).terminal(out, border=_QUIET, compact=True)
    return out.getvalue().splitlines()
