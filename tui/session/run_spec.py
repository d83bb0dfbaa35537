"""What a run is asked to be: the test, the far end, how it is judged, its record and its outputs.

A command, a screen and a watch make a `RunSpec`. Everything below them takes it, and none copies its fields.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.model.errors import UsageError
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan
from ...presets.catalog import Catalog
from ...presets.preset import Preset
from ...presets.sending_rate import SendingRate
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ...presets.wire import DEFAULT_VARIANT, Variant

if TYPE_CHECKING:
    from ...presets.verdict import LatencyLimit


@dataclass(frozen=True, slots=True)
class Judging:
    """What a run is compared with.

    With a catalog as preset, the one that fits the link is chosen once the far end is known. `variant` has the link
    options that differ from the preset's, `pass_percent` is the pass mark in percent of the expected rate.
    `latency_limit` is what the latency under load of a responsiveness test may be. `why` has a run diagnosed even
    if it has no expected rate. `is_rate_expected` has the plan's own rate as the expected one if that is lower.
    """

    preset: Preset | Catalog | None = None
    variant: Variant = DEFAULT_VARIANT
    pass_percent: float = DEFAULT_PASS_PERCENT
    latency_limit: "LatencyLimit | None" = None
    why: bool = False
    is_rate_expected: bool = False

    @property
    def chosen(self) -> Preset | None:
        """The preset; None without one, and as long as it is not chosen."""
        return None if isinstance(self.preset, Catalog) else self.preset

    @property
    def preset_id(self) -> str | None:
        """The id of that preset."""
        return None if self.chosen is None else self.chosen.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the run log has of a run beside its measurements.

    `label` is the user's name for the run, `group` the name of the series that it belongs to. `run_id` is for a
    caller that needs the id before the run begins. `notices` are from before the run, and are shown with its own.
    """

    label: str | None = None
    group: str | None = None
    run_id: str | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where the result of a run, or of a series of them, goes beside the terminal.

    `csv` is the file of the rows: of a run's intervals, which are appended, or of a series' runs. `report` is the
    page of a series.
    """

    csv: Path | None = None
    report: Path | None = None
    as_json: bool = False
    as_json_stream: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for both kinds of JSON at once."""
        if self.as_json and self.as_json_stream:
            raise UsageError("--json-stream and --json exclude each other: give one of them")

    @property
    def is_for_programs(self) -> bool:
        """Whether stdout gets JSON."""
        return self.as_json or self.as_json_stream


@dataclass(frozen=True, slots=True)
class RunSpec:
    """A run as it was asked for.

    `sending_rate` is the requested rate of datagrams. `target_ci_percent` ends the run as soon as the confidence
    interval of its mean is this narrow. `confirm` asks for a second run, which shows whether the first finding is
    the limit.
    """

    plan: Plan
    peer: Peer
    judging: Judging = field(default_factory=Judging)
    record: Record = field(default_factory=Record)
    outputs: Outputs = field(default_factory=Outputs)
    sending_rate: SendingRate | None = None
    target_ci_percent: float | None = None
    confirm: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for a confirmation of a run without an end."""
        if self.confirm and not self.plan.has_end:
            raise UsageError("--confirm needs a test that ends by itself; give --seconds")

    def with_notices(self, *notices: str) -> "RunSpec":
        """Return the same run with further notices from before it."""
        return replace(self, record=replace(self.record, notices=(*self.record.notices, *notices)))
