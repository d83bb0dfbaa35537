"""The log that follows its newest line: each line once, wrapped for the width, empty for another run."""

from linkgauge.tui.kit.widgets.log_view import LogView
from rich.text import Text

from ...endpoint.endpoint_examples import WidgetApp


class Words(LogView[str]):
    """A log of plain texts."""

    def __init__(self) -> None:
        super().__init__(widget_id="words")

    def line_text(self, line: str) -> Text:
        """Return the text."""
        return Text(line)


async def test_lines_are_wrapped_anew_for_another_width() -> None:
    """Nothing of a long line is lost."""
    app = WidgetApp(Words())
    words = [f"word{number}" for number in range(12)]
    async with app.run_test(size=(100, 12)) as pilot:
        app.widget.show_lines([" ".join(words)], 1)
        await pilot.resize_terminal(30, 12)
        await pilot.pause()
        assert " ".join(app.lines()).split() == words


async def test_fewer_lines_than_before_are_those_of_another_log() -> None:
    """A new run begins with an empty log; a line that was shown is not written again."""
    app = WidgetApp(Words())
    async with app.run_test(size=(40, 8)) as pilot:
        for lines in (["a", "b"], ["a", "b"], ["a", "b", "c"], ["d"]):
            app.widget.show_lines(lines, len(lines))
            await pilot.pause()
        assert "".join(app.lines()).split() == ["d"]


async def test_the_scrollbar_cuts_no_line() -> None:
    """It appears when the log is full, after most lines were wrapped."""
    app = WidgetApp(Words())
    lines = [f"{number:02} " + "x" * 23 for number in range(12)]  # each as wide as the log without a scrollbar
    async with app.run_test(size=(28, 8)) as pilot:
        for count in range(1, len(lines) + 1):
            app.widget.show_lines(lines[:count], count)
            await pilot.pause()
        app.widget.scroll_home(animate=False)
        await pilot.pause()
        shown = "".join(character for character in "".join(app.lines()) if character.isalnum())
        assert f"00{'x' * 23}01{'x' * 23}" in shown
