"""The log of an endpoint on its screen: each line once, with its mark, wrapped for the width."""

from datetime import UTC, datetime

from linkgauge.tui.state.endpoint import EndpointLogLine
from linkgauge.tui.widgets.endpoint.endpoint_log_view import EndpointLogView

from .endpoint_values import WidgetApp

NOON = datetime(2026, 11, 21, 12, 0, 5, tzinfo=UTC)


def log_lines(count: int) -> list[EndpointLogLine]:
    """Return lines with their numbers."""
    return [EndpointLogLine(NOON, "refused", f"refusal {number}\x1b[2J") for number in range(count)]


async def test_each_line_is_written_once_however_often_it_is_shown() -> None:
    """Only the newest lines are left of those that were written; an unknown kind has a dot."""
    app = WidgetApp(EndpointLogView())
    async with app.run_test(size=(60, 8)) as pilot:
        lines = log_lines(3)
        app.widget.show(lines[:2], 2)
        app.widget.show(lines[:2], 2)
        app.widget.show([lines[1], lines[2], EndpointLogLine(NOON, "other", "more")], 4)
        await pilot.pause()
        shown = [line.strip() for line in app.lines() if line.strip()]
        assert [line.split()[1:4] for line in shown[:3]] == [["✗", "refusal", f"{n}"] for n in range(3)]
        assert [line.split()[0] for line in shown] == ["12:00:05"] * 4
        assert shown[3].split()[1:] == ["·", "more"]


async def test_lines_are_wrapped_anew_for_another_width() -> None:
    """Nothing of a long line is lost."""
    app = WidgetApp(EndpointLogView())
    words = [f"word{number}" for number in range(12)]
    async with app.run_test(size=(100, 12)) as pilot:
        app.widget.show([EndpointLogLine(NOON, "client", " ".join(words))], 1)
        await pilot.resize_terminal(30, 12)
        await pilot.pause()
        assert " ".join(" ".join(app.lines()).split()[2:]) == " ".join(words)
