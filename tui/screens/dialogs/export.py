"""Export: a small choice of forms, then a file's name; what is long is done in a thread."""

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ....engine.model.errors import LinkgaugeError
from ...interfaces import ExportFormat, ExportRuns
from ...rendering.styles import KEY, MUTED
from ...text import numbers
from ..layout import app_of
from .ask import AskScreen, validate_new_path

PICTURE: Final = "svg"


@dataclass(frozen=True, slots=True)
class _Choice:
    key: str
    form: str
    name: str
    hint: str


_CHOICES: Final = (
    _Choice("c", "csv", "CSV", "one row for each interval, direction and session"),
    _Choice("j", "json", "JSON", "the document that --json prints"),
    _Choice("h", "html", "HTML report", "one page with plots, for a ticket or a mail"),
    _Choice("p", PICTURE, "picture", "this screen, as SVG"),
)


class ExportScreen(ModalScreen[str | None]):
    """Answers the form; None where the person goes back. Without a run there is only the picture."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back"),
        *(Binding(choice.key, f"choose('{choice.form}')", choice.name) for choice in _CHOICES),
    ]
    DEFAULT_CSS = """
    ExportScreen {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 94%;
            height: auto;
            padding: 0 1;
            border: round $primary;
            background: $surface;
            border-title-style: bold;
        }
        & OptionList { height: auto; border: none; background: $surface; }
    }
    """

    def __init__(self, what: str, *, has_runs: bool) -> None:
        super().__init__()
        self._what = what
        self._choices = [choice for choice in _CHOICES if has_runs or choice.form == PICTURE]

    def compose(self) -> ComposeResult:
        """Lay out the forms."""
        with Vertical() as box:
            box.border_title = Content(f"export {self._what}")
            box.border_subtitle = Content("enter choose   esc back")
            yield OptionList(*(Option(_row(choice), id=choice.form) for choice in self._choices), markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer what the arrows stand on."""
        self.dismiss(event.option_id)

    def action_choose(self, form: str) -> None:
        """Answer what a letter stands for."""
        if any(choice.form == form for choice in self._choices):
            self.dismiss(form)

    def action_back(self) -> None:
        """Go back without an answer."""
        self.dismiss(None)


def _row(choice: _Choice) -> Content:
    return Content.assemble((f" {choice.key} ", KEY), f"{choice.name:<13}", (choice.hint, MUTED))


def ask_export(screen: Screen[None], run_ids: Sequence[str], export: ExportRuns) -> None:
    """Ask in which form, and where to, and write it: these runs, or the screen as it is when it is chosen."""
    app = app_of(screen)
    what = (
        "the screen" if not run_ids else run_ids[0] if len(run_ids) == 1 else numbers.quantity(len(run_ids), "run")
    )

    def chosen(form: str | None) -> None:
        if form is None:
            return
        picture = app.export_screenshot(title="linkgauge") if form == PICTURE else None
        choice = next(one for one in _CHOICES if one.form == form)
        name = f"linkgauge-{run_ids[0] if len(run_ids) == 1 else 'runs' if run_ids else 'screen'}.{form}"

        def named(text: str | None) -> None:
            if text is None:
                return
            path = Path(text).expanduser()
            work = _write_picture(screen, picture, path) if picture else _write(screen, export, run_ids, form, path)
            screen.run_worker(work, group="export", exit_on_error=False)

        app.push_screen(AskScreen(f"export to {choice.name}", name, choice.hint, validate_new_path), named)

    app.push_screen(ExportScreen(what, has_runs=bool(run_ids)), chosen)


async def _write(screen: Screen[None], export: ExportRuns, run_ids: Sequence[str], form: str, path: Path) -> None:
    if form == "html":
        screen.notify("The plots take a few seconds.", title="making the report", markup=False)
    await _told(screen, to_thread(export, run_ids, cast("ExportFormat", form), path))


async def _write_picture(screen: Screen[None], picture: str, path: Path) -> None:
    def write() -> Path:
        path.write_text(picture, encoding="utf-8")
        return path

    await _told(screen, to_thread(write))


async def _told(screen: Screen[None], writing: Any) -> None:
    try:
        written = await writing
    except (LinkgaugeError, OSError) as error:
        screen.notify(numbers.sanitize(str(error)), title="not exported", severity="error", markup=False)
    else:
        screen.notify(str(written), title="exported", markup=False)
