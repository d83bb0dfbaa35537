"""What is rendered of a frame: only what has changed, and with it the same screen as all of it would show."""

from typing import Any

import pytest
from linkgauge.engine.model.plan import Direction, Plan, Settings
from linkgauge.tui.kit.drawing import diff_compositor
from linkgauge.tui.kit.drawing.screen_diff import ScreenDiff
from textual._compositor import ChopsUpdate, LayoutUpdate  # what the terminal gets
from textual.widget import Widget

DUPLEX = Plan(Settings(Direction.DUPLEX, 12))


class Seen:
    """A terminal that takes what the app would send it, frame by frame."""

    def __init__(self, app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frames = ScreenDiff(app.console._color_system)
        self.partial = 0
        display = diff_compositor.DiffApp._display

        def take(this: Any, screen: Any, update: Any) -> None:
            if isinstance(update, ChopsUpdate | LayoutUpdate):
                self.partial += isinstance(update, ChopsUpdate)
                self.frames.resize(*this.size)
                diff_compositor.apply_update(self.frames, update)
            display(this, screen, update)

        monkeypatch.setattr(diff_compositor.DiffApp, "_display", take)

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
    diff_compositor.apply_update(frames, app.screen._compositor.render_full_update())
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
