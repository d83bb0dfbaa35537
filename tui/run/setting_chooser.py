"""The values of a setting as a list to choose from: what a click on the settings line opens."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ...engine.model.directions import Direction
from ...engine.model.workload import all_workloads
from ..kit.screens.base_screen import Dialog
from ..readings.setting_steps import DATAGRAM_STEPS, DURATION_STEPS, WINDOW_STEPS, rate_steps, session_steps
from ..words import numbers
from .cockpit_state import CockpitState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SettingChoices:
    """The values of a setting in words, the number of the one in force, and what choosing each does."""

    name: str
    texts: tuple[str, ...]
    current: int | None
    choose: tuple[Callable[[], object], ...]


def setting_choices(
    state: CockpitState, key: str, set_duration: Callable[[int | None], object], set_workload: Callable[..., object]
) -> SettingChoices | None:
    """Return the choices of the setting that has a key in the settings line; None for another key."""
    plan, change = state.plan, state.change_settings
    settings = plan.settings
    rates = (*rate_steps(state.expected_sending_bit_s), None)
    sizes = (*DATAGRAM_STEPS, None)
    counts = session_steps(state.peer)
    known: dict[str, Callable[[], SettingChoices]] = {
        "d": lambda: _choices("direction", Direction, settings.direction, str, lambda to: change(direction=to)),
        "+-": lambda: _choices("sessions", counts, settings.sessions, str, lambda to: change(sessions=to)),
        "[]": lambda: _choices(
            "window", WINDOW_STEPS, settings.window_bytes, numbers.window, lambda to: change(window=(to,))
        ),
        "b": lambda: _choices(
            "datagram size",
            sizes,
            settings.datagram_bytes,
            numbers.datagram_size,
            lambda to: change(datagram=(to,)),
        ),
        "jk": lambda: _choices("rate", rates, settings.rate_bit_s, _rate_text, state.set_rate),
        "t": lambda: _choices("time", DURATION_STEPS, plan.duration_ns, numbers.duration, set_duration),
        "w": lambda: _choices("workload", all_workloads(), plan.workload, str, set_workload),
    }
    make = known.get(key)
    return None if make is None else make()


def _rate_text(bit_s: int | None) -> str:
    return "max: as fast as the receiver takes it" if bit_s is None else numbers.rate(bit_s)


def _choices(
    name: str, values: Iterable[T], current: T, text: Callable[[T], str], choose: Callable[[T], object]
) -> SettingChoices:
    each = tuple(values)
    return SettingChoices(
        name,
        tuple(map(text, each)),
        each.index(current) if current in each else None,
        tuple(partial(choose, value) for value in each),
    )


class SettingChooser(Dialog[int]):
    """Answers the number of the chosen value."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q", "back", show=False)]
    DEFAULT_CSS = """
    SettingChooser {
        & > Vertical { width: 32; }
        & OptionList { height: auto; max-height: 16; border: none; padding: 0; background: $surface; }
    }
    """

    def __init__(self, choices: SettingChoices) -> None:
        super().__init__()
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Compose the list of values."""
        with Vertical() as box:
            box.border_title = Content(self._choices.name)
            box.border_subtitle = Content("enter choose   esc back")
            yield OptionList(*(Option(Content(f" {text}")) for text in self._choices.texts), markup=False)

    def on_mount(self) -> None:
        """Put the cursor on the value in force."""
        self.query_one(OptionList).highlighted = self._choices.current

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer the value."""
        self.dismiss(event.option_index)
