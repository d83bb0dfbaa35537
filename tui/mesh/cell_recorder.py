"""The result of a cell of a mesh: its events arrive all at once, and its run is stored and judged like any other.

The hosts do not know the presets. The expected rate is found here, for the interfaces that both hosts report. It
goes into the first event of the run, so that the run log has it as if it had been known from the start.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Final, Self

from ...engine.model.errors import DecodeError, LinkgaugeError
from ...engine.model.events import Event, Started
from ...engine.model.serialization import decode, encode
from ...engine.results.run_log import RunLog
from ...engine.results.run_result import RunResult
from ...mesh.events import CellEnded, CellFailure, FailureCode
from ...mesh.figures import CellFigure
from ...mesh.plan import Cell, MeshMode, MeshPlan
from ...presets.auto_select import select_preset
from ...presets.catalog import Catalog
from ...presets.wire import DEFAULT_VARIANT
from ..session.run_recorder import RunRecorder
from ..session.run_spec import Judging, Record

_AT_EXPECTED: Final = "at-expected"
_NO_EVENTS: Final = "the host sent no events of the test"


@dataclass(frozen=True, slots=True)
class RunCell:
    """The cell of a run, as its result has it. `near` began it; `is_again` marks the second run, alone."""

    sender: str
    receiver: str
    near: str = ""
    is_again: bool = False

    @classmethod
    def of(cls, run: RunResult) -> Self | None:
        """Return the cell of a run; None for a run outside meshes."""
        try:
            return decode(cls, run.cell)
        except DecodeError:
            return None

    @property
    def cell(self) -> Cell:
        """The place in the matrix."""
        return Cell(self.sender, self.receiver)


class CellRecorder:
    """Records the runs of a mesh's cells in a group of the run log."""

    def __init__(self, plan: MeshPlan, judging: Judging, log: RunLog | None) -> None:
        self._plan = plan
        self._judging = replace(judging, is_rate_expected=True)
        self._log = log
        self.notices: list[str] = []
        """The reasons why runs have no preset, and the warnings about the chosen presets; each once."""

    def record(self, ended: CellEnded) -> CellFigure:
        """Return the result of a cell whose run has ended; store the run, if there is one."""
        if not ended.events or not isinstance(ended.events[0], Started):
            failure = ended.failure or CellFailure(FailureCode.FAILED, _NO_EVENTS, ended.near)
            return CellFigure(ended.cell, failure=failure)
        with nullcontext() if self._log is None else self._log.together():
            return self._record(ended, ended.events[0])

    def _record(self, ended: CellEnded, started: Started) -> CellFigure:
        judging, plan = self._choose(started), started.plan
        expectation = judging.expect(plan, plan.settings, ip_version=started.ip_version)
        events: tuple[Event, ...] = (replace(started, expectation=expectation), *ended.events[1:])
        recorder = RunRecorder(
            judging,
            started.ip_version,
            log=self._log,
            peer=started.peer,
            record=Record(label=f"{ended.cell.sender} to {ended.cell.receiver}", group=self._plan.group),
        )
        texts = [None, *ended.texts[1:]] if ended.texts else []  # the first event has its expectation now
        run_cell = RunCell(*ended.cell, ended.near, self.is_again(ended))
        outcome = recorder.record_whole(events, {"cell": encode(run_cell)}, texts)
        return figure_of_run(ended.cell, outcome.run_id, outcome.result, ended.failure)

    def is_again(self, ended: CellEnded) -> bool:
        """Return whether a cell was measured once more, alone."""
        return ended.is_isolated and self._plan.mode is not MeshMode.ISOLATED

    def _choose(self, started: Started) -> Judging:
        """Return how a cell is judged: with the preset for the interfaces that both hosts report, if they tell."""
        judging = self._judging
        try:
            if isinstance(judging.preset, Catalog):
                selection = select_preset(
                    judging.preset, started.near.nic, started.far.nic, requested=judging.variant
                )
                for notice in selection.notices if selection.chosen is None else selection.warnings:
                    self._note(notice)
                judging = replace(judging, preset=selection.chosen, variant=selection.variant)
            judging.variant.over_ip(started.ip_version)
        except LinkgaugeError as error:
            self._note(f"no expected rate: {error}")
            return replace(judging, preset=None, variant=DEFAULT_VARIANT)
        return judging

    def _note(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)


def figure_of_run(cell: Cell, run_id: str, run: RunResult, failure: CellFailure | None = None) -> CellFigure:
    """Return the result of a cell from the result of its run.

    A run that broke off, or that measured nothing, is a failure with the detail of its end.
    """
    if failure is None and (run.total is None or not run.reason.is_regular):
        failure = CellFailure(FailureCode.FAILED, run.detail or "")
    if failure is not None or run.total is None:
        return CellFigure(cell, run_id, failure=failure)
    return CellFigure(
        cell,
        run_id=run_id,
        bit_s=run.total.bit_s,
        transactions_s=run.total.transactions_s,
        expected_bit_s=run.expected_bit_s,
        loss=run.loss,
        rise_ns=run.rise_ns,
        why=next((code for code in run.why if code != _AT_EXPECTED), None),
    )
