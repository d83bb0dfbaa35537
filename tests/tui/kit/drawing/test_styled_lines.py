"""Widgets that draw lines: an unchanged line is not repainted, and no line leaves the widget."""

from typing import Any

import pytest
from linkgauge.tui.kit.drawing.styled_lines import LineWidget, cut_words, first_fit, join_fit, shorten_middle
from rich.cells import cell_len
from textual.content import Content
from textual.geometry import Region

from ...gauges.instrument_bench import Bench


class Lines(LineWidget[tuple[str, ...]]):
    """Shows texts, and records the regions that it repaints."""

    def __init__(self, *texts: str) -> None:
        super().__init__(texts)
        self.repainted: list[Region] = []

    def draw(self, value: tuple[str, ...], width: int, height: int) -> list[Content]:  # noqa: ARG002 (its parameters)
        """Return a line for each text."""
        return [Content(text) for text in value]

    def refresh(self, *regions: Region, **options: Any) -> "Lines":
        """Record the regions."""
        self.repainted += regions
        super().refresh(*regions, **options)
        return self


async def test_only_a_changed_line_is_repainted() -> None:
    """A line that is gone counts as changed."""
    app = Bench(Lines("a", "b", "c"))
    async with app.run_test(size=(10, 5)):
        widget = app.instrument
        for texts, rows in ((("a", "b", "c"), []), (("a", "x", "c"), [1]), (("a", "x"), [2])):
            widget.repainted.clear()
            widget.show(texts)
            assert widget.repainted == [Region(0, y, 10, 1) for y in rows]


async def test_every_line_has_the_width_of_the_widget() -> None:
    """Short and long ones, and the empty ones below them; lines past the height are left out."""
    app = Bench(Lines("short", "much too long for it", *"cdefg"))
    async with app.run_test(size=(10, 4)):
        strips = [app.instrument.render_line(y) for y in range(6)]
        assert [strip.cell_length for strip in strips] == [10] * 6
        assert [strip.text.strip() for strip in strips] == ["short", "much too l", "c", "d", "", ""]


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (40, "10 GbE, MTU 1500, RFC1323"),
        (18, "10 GbE, MTU 1500 …"),
        (16, "10 GbE, MTU …"),
        (2, ""),
    ],
)
def test_a_text_without_room_loses_whole_words(width: int, text: str) -> None:
    """Half of 1500 would be another number."""
    assert cut_words("10 GbE, MTU 1500, RFC1323", width) == text


def test_parts_of_a_line_are_whole_or_left_out() -> None:
    """The first that fits, or the leading ones that do."""
    long, short = Content("14 391 Mb/s"), Content("14 391")
    assert first_fit(8, long, short).plain == "14 391"
    assert first_fit(3, long, short).plain == ""
    assert join_fit(13, (short, Content("Mb/s"), Content("out")), " ").plain == "14 391 Mb/s"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("FDDI", "FDDI              "),
        ("LPAR to LPAR, without largesend", "LPAR to LP…rgesend"),
        ("10 Gb cloud, MTU 8896 (maximum)", "10 Gb clou…aximum)"),
        ("cloud, MTU 8896, 100 Gb default", "cloud, MTU…default"),
        ("10 Gb イーサネット、全二重、MTU 1500", "10 Gb イー…TU 1500"),
        ("全二重、半二重、全二重、半二重", "全二重、半 …半二重"),
    ],
)
def test_a_long_name_keeps_its_beginning_and_its_end(name: str, shown: str) -> None:
    """They tell it from its neighbours; no wide character is cut in half."""
    assert shorten_middle(name, 18) == shown
    assert cell_len(shown) == 18
