"""A long text: it is laid out for its width, and shown from its beginning."""

from linkgauge.tui.widgets.common.text_page import TextPage
from rich.text import Text
from textual.app import App, ComposeResult
from textual.content import Content


class PageApp(App[None]):
    """A page alone on a screen."""

    def compose(self) -> ComposeResult:
        """Show the page."""
        yield TextPage()


def texts(page: TextPage, rows: int) -> list[str]:
    """Return the lines in view."""
    return [page.render_line(y).text.rstrip() for y in range(rows)]


async def test_lines_are_laid_out_anew_for_another_width() -> None:
    """The function of a text gets the width without the scroll bar."""
    app = PageApp()
    async with app.run_test(size=(21, 4)) as pilot:
        page = app.query_one(TextPage)
        page.show(lambda width: [Content("x" * width)])
        assert texts(page, 2) == ["x" * 20, ""]
        await pilot.resize_terminal(41, 4)
        await pilot.pause()
        assert texts(page, 2) == ["x" * 40, ""]


async def test_a_renderable_is_wrapped_and_a_new_text_starts_at_its_top() -> None:
    """Also after the page was scrolled."""
    app = PageApp()
    async with app.run_test(size=(11, 3)) as pilot:
        page = app.query_one(TextPage)
        page.show(Text("one two three four five six seven eight nine ten"))
        assert texts(page, 3) == ["one two", "three four", "five six"]
        page.scroll_end(animate=False)
        await pilot.pause()
        assert texts(page, 3)[-1] == "ten"
        page.show(Text("other"))
        await pilot.pause()
        assert texts(page, 2) == ["other", ""]
