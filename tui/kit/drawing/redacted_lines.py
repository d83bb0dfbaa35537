"""The screen's edge: each line is drawn with stand-ins for addresses and names, if they are wanted."""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from ...words.redaction import REDACTION


class RedactionFilter(LineFilter):
    """Puts stand-ins into lines. A line keeps its length, and each cell its style."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments with stand-ins."""
        del background
        line = "".join(segment.text for segment in segments)
        redacted = REDACTION.line(line)
        if redacted == line:
            return segments
        result: list[Segment] = []
        position = 0
        for segment in segments:
            end = position + len(segment.text)
            result.append(Segment(redacted[position:end], segment.style, segment.control))
            position = end
        return result
