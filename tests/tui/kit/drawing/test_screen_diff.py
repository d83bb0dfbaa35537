"""What a frame renders and writes: only what has changed. The terminal shows the same as after a whole frame."""

import random
from typing import Any

import pyte
import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.tui.kit.drawing.screen_diff import DiffApp, ScreenDiff, sgr_style
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate  # what the terminal gets
from textual.widget import Widget

DUPLEX = Plan(Settings(Direction.DUPLEX, 12))
SIZE = (40, 6)
STYLES = [
    None,
    Style.parse("bold"),
    Style.parse("#ff8800 on #001122"),
    Style.parse("reverse green"),
    Style.parse("bold #ff8800 on #001122"),
]
WORDS = ["9 388", "█▀▀█", "Mb/s", " ", "イーサ", "あ", "é", "▇▆", "━━", "a long piece of text"]


class Terminal:
    """A terminal in memory that takes what frames have to write."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(*SIZE)
        self.stream = pyte.Stream(self.screen)
        self.frames = ScreenDiff(ColorSystem.TRUECOLOR)
        self.frames.resize(*SIZE)

    def draw(self, x: int, y: int, *parts: tuple[str, Style | None]) -> str:
        """Put a line, and write what is new; return what was written."""
        segments = [Segment(text, style) for text, style in parts]
        length = sum(cell_len(text) for text, _ in parts)
        self.frames.put(x, y, segments, (x, x + length))
        written = self.frames.render_changes()
        self.stream.feed(written)
        return written


def shown(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """Return every cell of a terminal: text and looks."""
    return [
        [(c.data, c.fg, c.bg, c.bold, c.reverse) for c in (screen.buffer[y][x] for x in range(screen.columns))]
        for y in range(screen.lines)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_many_small_changes_show_the_same_as_a_whole_frame(seed: int) -> None:
    """Over any content: text, colours, wide characters over narrow ones and narrow ones over wide ones."""
    chance = random.Random(seed)  # noqa: S311
    step_by_step, at_once = Terminal(), Terminal()
    at_once.frames.render_changes()
    for _ in range(60):
        parts = [(chance.choice(WORDS), chance.choice(STYLES)) for _ in range(chance.randint(1, 4))]
        x, y = chance.randrange(10), chance.randrange(SIZE[1])
        step_by_step.draw(x, y, *parts)
        for row in (step_by_step, at_once):
            row.frames.put(x, y, [Segment(*part) for part in parts], (0, SIZE[0]))
    step_by_step.stream.feed(step_by_step.frames.render_changes())
    at_once.frames.invalidate()
    at_once.stream.feed(at_once.frames.render_changes())
    assert shown(step_by_step.screen) == shown(at_once.screen)


def test_what_stays_the_same_is_not_written() -> None:
    """Nothing for the same line, and for one digit little more than the digit."""
    terminal = Terminal()
    style = Style.parse("bold #e0e0e0 on #121212")
    terminal.draw(0, 0, ("throughput 9 388 Mb/s", style))
    assert terminal.draw(0, 0, ("throughput 9 388 Mb/s", style)) == ""
    written = terminal.draw(0, 0, ("throughput 9 389 Mb/s", style))
    assert written.count("9") == 1
    assert len(written) < 60
    assert terminal.screen.display[0].startswith("throughput 9 389 Mb/s")


def test_adjacent_changes_of_the_same_style_are_a_single_piece() -> None:
    """Moving over three cells takes more bytes than writing them."""
    terminal = Terminal()
    terminal.draw(0, 0, ("a---b", None))
    assert terminal.draw(0, 0, ("c---d", None)).count("H") == 1
    terminal.draw(0, 1, ("a", None), ("-", STYLES[2]), ("b", None))
    assert terminal.draw(0, 1, ("c", None), ("-", STYLES[2]), ("d", None)).count("H") == 2


def test_the_next_frame_makes_up_for_a_skipped_frame() -> None:
    """Changes that were put but not written are in what is written later."""
    terminal = Terminal()
    terminal.frames.put(0, 0, [Segment("first")], (0, 5))
    terminal.frames.put(0, 1, [Segment("second")], (0, 6))
    terminal.draw(0, 2, ("third", None))
    assert [line.strip() for line in terminal.screen.display[:3]] == ["first", "second", "third"]


def test_another_size_and_a_terminal_that_was_used_by_others_is_drawn_whole() -> None:
    """Its contents are unknown."""
    terminal = Terminal()
    terminal.draw(0, 0, ("text", None))
    terminal.screen.reset()
    terminal.frames.invalidate()
    terminal.stream.feed(terminal.frames.render_changes())
    assert terminal.screen.display[0].startswith("text")
    terminal.frames.resize(20, 3)
    assert terminal.frames.render_changes().count("H") == 3


def test_only_values_within_the_limits_are_accepted() -> None:
    """A line that was rendered whole, of which only a part is to be drawn; and lines that are not there."""
    frames = ScreenDiff(None)
    frames.resize(10, 1)
    frames.render_changes()
    frames.put(2, 0, [Segment("abcdef")], (4, 6))
    frames.put(8, 0, [Segment("xyz")], (0, 99))
    frames.put(0, 7, [Segment("nowhere")], (0, 99))
    screen = pyte.Screen(10, 1)
    pyte.Stream(screen).feed(frames.render_changes())
    assert screen.display[0] == "    cd  xy"


def test_a_terminal_of_few_colours_gets_few() -> None:
    """And one that has none, none: attributes stay."""
    style = Style.parse("bold #ff8800 on #001122")
    assert sgr_style(style, ColorSystem.STANDARD).sgr_from(None).count(";") <= 4
    assert sgr_style(style, None).sgr_from(None) == "\x1b[0;1m"
    assert sgr_style(style, ColorSystem.TRUECOLOR) is sgr_style(
        Style.parse("#ff8800 bold on #001122"), ColorSystem.TRUECOLOR
    )


class Seen:
    """A terminal that takes what the app would send it, frame by frame."""

    def __init__(self, app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frames = ScreenDiff(app.console._color_system)
        self.partial = 0
        display = DiffApp._display

        def take(this: Any, screen: Any, update: Any) -> None:
            if isinstance(update, ChopsUpdate | LayoutUpdate):
                self.partial += isinstance(update, ChopsUpdate)
                self.frames.resize(*this.size)
                self.frames.put_update(update)
            display(this, screen, update)

        monkeypatch.setattr(DiffApp, "_display", take)

    def lines(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Return what would stand there."""
        return lines_of(self.frames)


def lines_of(frames: ScreenDiff) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the text of each line, and the pens of its cells."""
    return [("".join(text), tuple(pens)) for text, pens in zip(frames._texts, frames._pens, strict=True)]


def whole(app: Any) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the lines of the screen as they are when all of it is rendered anew."""
    for widget in app.screen.query("*"):
        widget._styles_cache.clear()
    frames = ScreenDiff(app.console._color_system)
    frames.resize(*app.size)
    frames.put_update(app.screen._compositor.render_full_update())
    return lines_of(frames)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("plan", [None, DUPLEX], ids=["one", "duplex"])
async def test_frames_of_what_has_changed_add_up_to_the_whole_screen(
    world: Any, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], plan: Plan | None
) -> None:
    """Start, warm-up, a run that gets slower, a change of its sessions, its end: after each of them."""
    async with world.cockpit(size, plan=plan) as cockpit:
        app = cockpit.app
        seen = Seen(app, monkeypatch)
        app.refresh(layout=True)
        app.screen.refresh()
        await cockpit.press("space")
        for rate in (9.1e9, 9.2e9, 3e9, 123.4e6):
            world.script.run_for(3, rate)
            await cockpit.settle()
            assert seen.lines() == whole(app)
        await cockpit.press("plus")
        world.script.run_for(3, 9e9)
        await cockpit.settle()
        assert seen.lines() == whole(app)
        world.script.end()
        await cockpit.end()
        assert seen.lines() == whole(app)
        assert seen.partial > 4


async def test_a_widget_that_has_not_changed_is_not_asked(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a dozen instruments changes: the others render nothing, nor do those behind it."""
    async with world.cockpit((120, 40)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 9e9)
        await cockpit.settle()
        widgets: list[Widget] = []
        render_lines = Widget.render_lines

        def noted(widget: Widget, crop: Any) -> Any:
            widgets.append(widget)
            return render_lines(widget, crop)

        monkeypatch.setattr(Widget, "render_lines", noted)
        gauge = cockpit.app.screen.query_one("#gauge-out")
        gauge.refresh()
        await cockpit.settle()
        assert widgets
        assert set(widgets) == {gauge}
