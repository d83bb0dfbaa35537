"""The lines around the table and of the panel: the head, the state, the connection at the cursor. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from textual.content import Content

from ...observe.observation import Observation, ObservedConnection, Status
from ..gauges.verdict_panel import finding_lines
from ..kit.drawing.styled_lines import cut_words, first_fit, join_fit
from ..kit.drawing.styles import DIRECTION_STYLES, KEY, MUTED
from ..words import numbers
from ..words.observed import totals_text
from .connection_words import (
    STATUS_MARKS,
    facts,
    figures,
    local_text,
    notes,
    peer_text,
    process_text,
    status_sentence,
)

_PRODUCT: Final = Content.styled("linkgauge  ", KEY)
_NOTE_GAP: Final = "   "
_LEAST_NOTE: Final = 24
_KIND: Final = Content.styled("observe  ", "bold")
SAVING: Final = ("●", "bold $text-error")  # of what goes to the run log


@dataclass(frozen=True, slots=True)
class TableState:
    """What the lines around the table say beside the observation."""

    shown: int = 0
    total: int = 0
    target: str | None = None
    filter_text: str = ""
    is_frozen: bool = False
    problem: str | None = None
    saved: int = 0


def saving_mark(text: str) -> Content:
    """Return the mark of what goes to the run log."""
    return Content.assemble(SAVING, (f" {text}", "bold"))


def head_line(observation: Observation | None, state: TableState, width: int) -> Content:
    """Return the line with the totals."""
    target = "" if state.target is None else f"{numbers.sanitize(state.target)}  "
    kind = _KIND + Content.styled(target, "bold")
    if observation is None:
        return first_fit(width, _PRODUCT + kind, kind)
    totals = Content(totals_text(observation))
    brief = Content(totals_text(observation).partition(";")[0])
    return first_fit(width, _PRODUCT + kind + totals, kind + totals, kind + brief, brief)


def state_line(observation: Observation | None, state: TableState, width: int) -> Content:
    """Return the line with the number of rows, what the user has chosen, and what is not visible."""
    if state.problem is not None:
        return Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(state.problem))
    of_total = "" if state.shown == state.total else f" of {numbers.count(state.total)}"
    parts = [Content.styled(f"{numbers.count(state.shown)}{of_total} shown", "bold")]
    if state.is_frozen:
        parts.append(Content.styled("❚❚ order frozen", "bold $text-warning"))
    if state.saved:
        parts.append(saving_mark(f"saving {numbers.count(state.saved)}"))
    line = join_fit(width, parts, "   ")
    for text in () if observation is None else notes(observation):
        room = width - line.cell_length - len(_NOTE_GAP) - 2
        line = Content.assemble(line, _NOTE_GAP, ("▲ ", "bold $text-warning"), (cut_words(text, room), MUTED))
        if line.cell_length >= width - _LEAST_NOTE:
            break
    return line


def connection_head(row: ObservedConnection, width: int) -> Content:
    """Return the line with the process and the addresses of a connection."""
    name = Content.styled(process_text(row), "bold")
    user = Content.styled("" if row.owner is None else f" {row.owner.user}", MUTED)
    others = "" if row.owner is None or not row.owner.others else f" +{row.owner.others}"
    arrow = Content.styled(f" {numbers.arrow(row.direction)} ", DIRECTION_STYLES[row.direction])
    ends = Content(f"{local_text(row)}") + arrow + Content(peer_text(row))
    process = name + Content.styled(others, MUTED)
    return first_fit(
        width, process + user + "  " + ends, process + "  " + ends, process + arrow + peer_text(row), process
    )


def connection_lines(row: ObservedConnection, width: int) -> list[Content]:
    """Return what the panel says of a connection: why it is as fast as it is, its figures, what it is."""
    return [*why_lines(row), *wrapped(figures(row), width), *wrapped(facts(row), width)]


def why_lines(row: ObservedConnection) -> list[Content]:
    """Return the findings with evidence and remedy, or the reason why there is none."""
    lines: list[Content] = []
    if row.status is Status.ENDED or not row.findings:
        mark = (f"{STATUS_MARKS[row.status]} ", "bold")
        lines.append(Content.assemble(mark, (status_sentence(row), "bold")))
    return [*lines, *finding_lines(row.findings)]


def wrapped(parts: Iterable[str], width: int) -> list[Content]:
    """Return parts in as few lines as possible, each part whole."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + 3 + len(part) <= width:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return [Content.styled(line, MUTED) for line in lines]
