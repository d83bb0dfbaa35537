"""Scrolling views: the cursor of a long list, headings that it skips, and the layout of a long text."""

from linkgauge.tui.kit.widgets.scroll_views import CursorList, TextPage
from rich.text import Text
from textual.app import App, ComposeResult
from textual.content import Content

HEADINGS = {0, 4}


class Numbers(CursorList):
    """Rows with their numbers; those of HEADINGS cannot have the cursor."""

    def __init__(self) -> None:
        super().__init__(header_rows=1)

    def draw(self, number: int, width: int) -> Content:  # noqa: ARG002 (as CursorList calls it)
        """Return the number."""
        return Content(f"row {number}")

    def is_selectable(self, number: int) -> bool:
        """Return whether a row is no heading."""
        return number not in HEADINGS


class ListApp(App[None]):
    """A list alone on a screen."""

    def compose(self) -> ComposeResult:
        """Show the list."""
        yield Numbers()


async def test_the_cursor_skips_headings_and_goes_around_at_the_ends() -> None:
    """Up, down, home and end."""
    app = ListApp()
    async with app.run_test(size=(20, 30)) as pilot:
        numbers = app.query_one(Numbers)
        numbers.set_rows(7, 3)
        numbers.focus()
        for key, row in (("down", 5), ("up", 3), ("home", 1), ("up", 6), ("down", 1), ("end", 6)):
            await pilot.press(key)
            assert numbers.highlighted == row, key


async def test_the_row_of_the_cursor_is_always_in_view() -> None:
    """Below the fixed header; at the first selectable row the heading above it is in view, too."""
    app = ListApp()
    async with app.run_test(size=(20, 6)) as pilot:
        numbers = app.query_one(Numbers)
        numbers.set_rows(100, None)
        numbers.focus()
        for key in ("pagedown", "pagedown", "down", "end", "up", "pageup"):
            await pilot.press(key)
            rows = [numbers.render_line(y).text.strip() for y in range(6)]
            assert f"row {numbers.highlighted}" in rows[1:], key
        await pilot.press("home")
        await pilot.pause()
        assert [numbers.render_line(y).text.strip() for y in range(3)] == ["", "row 0", "row 1"]


async def test_the_cursor_stays_within_rows_that_become_fewer() -> None:
    """Without a selectable row there is no cursor."""
    app = ListApp()
    async with app.run_test(size=(20, 6)):
        numbers = app.query_one(Numbers)
        numbers.set_rows(50, 40)
        numbers.set_rows(10, numbers.highlighted)
        assert numbers.highlighted == 9
        numbers.set_rows(1, numbers.highlighted)
        assert numbers.highlighted is None


async def test_a_click_moves_the_cursor_and_a_second_click_selects() -> None:
    """A click on a heading does nothing."""
    app = ListApp()
    selected: list[int] = []
    async with app.run_test(
        size=(20, 10),
        message_hook=lambda message: selected.extend(
            [message.row] if isinstance(message, CursorList.Selected) else []
        ),
    ) as pilot:
        numbers = app.query_one(Numbers)
        numbers.set_rows(7, 1)
        await pilot.click(Numbers, offset=(2, 4))
        assert numbers.highlighted == 3
        await pilot.click(Numbers, offset=(2, 5))
        assert (numbers.highlighted, selected) == (3, [])
        await pilot.click(Numbers, offset=(2, 4))
        await pilot.pause()
        assert selected[:1] == [3]


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
        page.show_text(lambda width: [Content("x" * width)])
        assert texts(page, 2) == ["x" * 20, ""]
        await pilot.resize_terminal(41, 4)
        await pilot.pause()
        assert texts(page, 2) == ["x" * 40, ""]


async def test_a_renderable_is_wrapped_and_a_new_text_starts_at_its_top() -> None:
    """Also after the page was scrolled."""
    app = PageApp()
    async with app.run_test(size=(11, 3)) as pilot:
        page = app.query_one(TextPage)
        page.show_text(Text("one two three four five six seven eight nine ten"))
        assert texts(page, 3) == ["one two", "three four", "five six"]
        page.scroll_end(animate=False)
        await pilot.pause()
        assert texts(page, 3)[-1] == "ten"
        page.show_text(Text("other"))
        await pilot.pause()
        assert texts(page, 2) == ["other", ""]
