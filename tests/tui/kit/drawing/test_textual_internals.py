"""The private parts of Textual and Rich that rendering relies on: an upgrade that changes them fails here first."""

import ast
import inspect
from pathlib import Path

import linkgauge.tui
import pytest
from linkgauge.tui.kit.drawing import line_breaks, screen_diff
from rich import _wrap
from rich.console import Console
from textual import _compositor as compositor
from textual.app import App
from textual.content import Content
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen
from textual.widget import Widget

TUI = Path(linkgauge.tui.__file__).parent


@pytest.mark.parametrize(
    ("function", "parameters"),
    [
        (compositor.Compositor.render_partial_update, ["self"]),
        (compositor.Compositor.render_full_update, ["self", "simplify"]),
        (compositor.Compositor.render_strips, ["self", "size"]),
        (compositor.Compositor._get_renders, ["self", "crop"]),
        (compositor.ChopsUpdate.__init__, ["self", "chops", "spans", "chop_ends"]),
        (compositor.LayoutUpdate.__init__, ["self", "strips", "region"]),
        (compositor.CompositorUpdate.render_segments, ["self", "console"]),
        (App._display, ["self", "screen", "renderable"]),
        (Widget.render_lines, ["self", "crop"]),
    ],
    ids=lambda value: getattr(value, "__qualname__", ""),
)
def test_called_and_overridden_private_methods_keep_their_parameters(
    function: object, parameters: list[str]
) -> None:
    """A new parameter or another order would be passed on wrongly by an override."""
    assert callable(function)
    assert list(inspect.signature(function).parameters) == parameters, "Textual has changed: see screen_diff"


async def test_private_attributes_keep_their_kind() -> None:
    """The app's state, the compositor's dirty regions and widgets, and the console's colours."""

    class Plain(App[None]):
        """Nothing but Textual."""

    app = Plain()
    async with app.run_test():
        assert isinstance(app._batch_count, int)
        assert app._running is True
        assert app._closed is False
        assert app._driver is not None
        assert isinstance(app.screen, Screen)
        assert type(app.screen._compositor) is compositor.Compositor
        assert isinstance(app.screen._compositor._dirty_regions, set)
        assert isinstance(app.screen._compositor.visible_widgets, dict)
        assert hasattr(app.screen._styles_cache, "clear")
    assert Console(color_system="truecolor")._color_system is not None
    assert Console(color_system=None)._color_system is None


def test_the_output_queue_length_of_a_terminal_is_known() -> None:
    """It tells that a terminal is behind: without it, frames would pile up instead of being left out."""
    assert "self._writer_thread" in inspect.getsource(LinuxDriver)
    writer = WriterThread(None)  # pyright: ignore[reportArgumentType] (it is not started, so it writes nothing)
    assert writer._queue.qsize() == 0
    assert writer._queue.maxsize > 0
    # The driver that does not wait for a stopped terminal replaces the file, and the wait of close().
    assert "WriterThread(self._file)" in inspect.getsource(LinuxDriver.start_application_mode)
    assert "self._writer_thread.stop()" in inspect.getsource(LinuxDriver.close)
    assert "None" in inspect.getsource(WriterThread.stop)


def test_rich_finds_the_words_of_a_line_with_one_pattern() -> None:
    """It is replaced by one that does not divide a number; Textual wraps with the same function."""
    assert "re_word.match" in inspect.getsource(_wrap.words)
    assert "divide_line" in inspect.getsource(Content._wrap_and_format)


@pytest.mark.every
def test_no_other_module_of_the_interface_uses_private_parts() -> None:
    """Neither by importing a private module, nor through an attribute of something that is not its own."""
    violations = [
        f"{path.relative_to(TUI)}:{node.lineno} {ast.unparse(node)}"
        for path in TUI.rglob("*.py")
        if path not in {Path(screen_diff.__file__), Path(line_breaks.__file__)}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _is_private_import(node) or _is_private_access(node) or _is_textual_override(node)
    ]
    assert violations == []


def _is_private_import(node: ast.AST) -> bool:
    """Return whether a statement imports a private module or name of Textual or Rich."""
    if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in {"textual", "rich"}:
        return False
    names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
    return any(name.startswith("_") for name in names)


def _is_private_access(node: ast.AST) -> bool:
    """Return whether an expression is `something._name`, where something is neither `self` nor `cls`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    )


def _is_textual_override(node: ast.AST) -> bool:
    """Return whether a class defines a method by the name of a private one of a widget, a screen or an app."""
    if not isinstance(node, ast.ClassDef) or not node.bases:
        return False
    return any(
        isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
        and item.name.startswith("_")
        and not item.name.startswith("__")
        and any(hasattr(kind, item.name) for kind in (App, Screen, Widget))
        for item in node.body
    )
