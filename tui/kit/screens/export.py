"""Export of runs or of the screen: choose a format, name the file, write it in a thread."""

from asyncio import to_thread
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ....engine.host.saved_files import written_whole
from ....engine.model.errors import LinkgaugeError, explain_os_error
from ...session.run_exports import ExportFormat, ExportRuns
from ...words import numbers
from ..drawing.styles import KEY, MUTED
from .base_screen import ActionScreen, Dialog
from .feature_app import app_of
from .prompts import TextPrompt, validate_new_path

PICTURE: Final = "svg"


@dataclass(frozen=True, slots=True)
class _Format:
    """A line of the dialog. `extension` is the file's, and also the format's name in ExportRuns."""

    key: str
    extension: str
    name: str
    hint: str


_FORMATS: Final = {
    format_.extension: format_
    for format_ in (
        _Format("c", "csv", "CSV", "one row per interval, direction and session"),
        _Format("j", "json", "JSON", "the same document as --json"),
        _Format("h", "html", "HTML report", "one page with plots, for a ticket or a mail"),
        _Format("p", PICTURE, "picture", "this screen, as SVG"),
    )
}


class ExportScreen(Dialog[str | None]):
    """A choice of formats. It answers a file extension, or None. Without runs there is only the picture."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "back", "back"),
        *(Binding(item.key, f"choose('{item.extension}')", item.name) for item in _FORMATS.values()),
    ]
    DEFAULT_CSS = """
    ExportScreen OptionList { height: auto; border: none; background: $surface; }
    """

    def __init__(self, what: str, *, has_runs: bool) -> None:
        super().__init__()
        self._what = what
        self._formats = [item for item in _FORMATS.values() if has_runs or item.extension == PICTURE]

    def compose(self) -> ComposeResult:
        """Compose the list of formats."""
        with Vertical() as box:
            box.border_title = Content(f"export {self._what}")
            box.border_subtitle = Content("enter choose   esc back")
            yield OptionList(*(Option(_row(item), id=item.extension) for item in self._formats), markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer the highlighted format."""
        self.dismiss(event.option_id)

    def action_choose(self, extension: str) -> None:
        """Answer the format of a letter."""
        if any(item.extension == extension for item in self._formats):
            self.dismiss(extension)


def _row(item: _Format) -> Content:
    return Content.assemble((f" {item.key} ", KEY), f"{item.name:<13}", (item.hint, MUTED))


def prompt_export(screen: ActionScreen, run_ids: Sequence[str] = (), export: ExportRuns | None = None) -> None:
    """Ask for a format and a file. Then write these runs, or a picture of the screen: without runs only that."""
    app = app_of(screen)
    runs = run_ids[0] if len(run_ids) == 1 else numbers.quantity(len(run_ids), "run")

    def prompt_path(extension: str | None) -> None:
        if extension is None:
            return
        picture = app.export_screenshot(title="linkgauge") if extension == PICTURE else None
        chosen_format = _FORMATS[extension]
        name = f"linkgauge-{run_ids[0] if len(run_ids) == 1 else 'runs' if run_ids else 'screen'}.{extension}"

        def write(text: str | None) -> None:
            if text is None:
                return
            path = Path(text).expanduser()
            task = (
                _write_picture(screen, picture or "", path)
                if picture or export is None
                else _write_runs(screen, export, run_ids, extension, path)
            )
            screen.run_worker(task, group="export", exit_on_error=False)

        prompt = TextPrompt(f"export to {chosen_format.name}", name, chosen_format.hint, validate_new_path)
        app.push_screen(prompt, write)

    app.push_screen(ExportScreen(runs if run_ids else "the screen", has_runs=bool(run_ids)), prompt_path)


async def _write_runs(
    screen: ActionScreen, export: ExportRuns, run_ids: Sequence[str], extension: str, path: Path
) -> None:
    if extension == "html":
        screen.notify("The plots take a few seconds.", title="writing the report")
    await _notify_result(screen, path, to_thread(export, run_ids, cast("ExportFormat", extension), path))


async def _write_picture(screen: ActionScreen, picture: str, path: Path) -> None:
    def write() -> Path:
        with written_whole(path) as stream:
            stream.write(picture)
        return path

    await _notify_result(screen, path, to_thread(write))


async def _notify_result(screen: ActionScreen, path: Path, pending: Awaitable[Path]) -> None:
    try:
        await pending
    except LinkgaugeError as error:
        screen.report(error, "export failed")
    except OSError as error:
        screen.report(f"{path}: {explain_os_error(error)}", "export failed")
    else:
        screen.notify(str(path), title="exported")
