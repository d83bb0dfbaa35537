"""What a run is asked to be: the test, the far end, how it is judged, its record and its outputs.

A command, a screen and a watch make a `RunSpec`. Everything below them takes it, and none copies its fields.
`complete_spec` adds what depends on the far end: the preset that fits both ends' interfaces, and the rate of
datagrams.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...engine.model.errors import UsageError
from ...engine.model.expected_rate import Expectation
from ...engine.model.host_info import NicInfo
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan, Settings
from ...engine.protocol.foreign.missing_features import Feature, why_unavailable
from ...presets.auto_select import AUTO, NO_PRESET, PresetSelection, select_preset
from ...presets.catalog import Catalog
from ...presets.expectation import check_variant, find_expectation, limit_expectation
from ...presets.preset import Preset
from ...presets.sending_rate import SendingRate, choose_rate
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ...presets.wire import DEFAULT_VARIANT, Variant

_LOOPBACK_NIC: Final = NicInfo("lo", "loopback")
_LOOPBACK_PRESET: Final = "loopback"

if TYPE_CHECKING:
    from ...engine.control.handshake import HandshakeResult
    from ...engine.near.connect import FarEnd
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

    def check_link_options(self) -> None:
        """Raise PlanError for link options without a preset, and for impossible ones."""
        if not isinstance(self.preset, Catalog):
            check_variant(self.preset, self.variant)

    def expect(self, plan: Plan, settings: Settings, ip_version: int | None) -> Expectation:
        """Return the rates to expect of a run of a plan while it has these settings; None is an unknown version."""
        preset = self.chosen
        if preset is None or not plan.has_documented_transactions:
            return Expectation()
        found = find_expectation(preset, settings, plan.workload, variant=self.variant, ip_version=ip_version)
        return limit_expectation(found, plan.rate_bit_s) if self.is_rate_expected else found


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
    page of a series. `line_ns` is the time of each line about the test; None for a live line, on a terminal.
    """

    csv: Path | None = None
    report: Path | None = None
    as_json: bool = False
    as_json_stream: bool = False
    line_ns: int | None = None

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
    the limit. `names_routers` looks up the names of a path's routers.
    """

    plan: Plan
    peer: Peer
    judging: Judging = field(default_factory=Judging)
    record: Record = field(default_factory=Record)
    outputs: Outputs = field(default_factory=Outputs)
    sending_rate: SendingRate | None = None
    target_ci_percent: float | None = None
    confirm: bool = False
    names_routers: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for a confirmation of a run without an end."""
        if self.confirm and not self.plan.has_end:
            raise UsageError("--confirm needs a test that ends by itself; give --seconds")

    def with_notices(self, *notices: str) -> "RunSpec":
        """Return the same run with further notices from before it."""
        return replace(self, record=replace(self.record, notices=(*self.record.notices, *notices)))


def find_preset(preset_id: str | None, catalog: Catalog) -> Preset | Catalog | None:
    """Return the preset of an id; for `auto` the catalog, for `complete_spec` later. Raises UnknownPreset."""
    if preset_id is None:
        return None
    return catalog if preset_id == AUTO else catalog.find(preset_id)


def find_initial_preset(catalog: Catalog, preset_id: str | None, peer: Peer) -> PresetSelection:
    """Return the preset that the app opens with. Raises UnknownPreset.

    Without an id, and for `auto`, the link to a remote host is not known before the host answers: NO_PRESET.
    """
    if preset_id not in {None, AUTO}:
        return PresetSelection(catalog.find(preset_id or ""), "")
    return PresetSelection(catalog.find(_LOOPBACK_PRESET) if peer.is_loopback else NO_PRESET, "")


async def pick_preset(catalog: Catalog, peer: "FarEnd", requested: Variant = DEFAULT_VARIANT) -> PresetSelection:
    """Return the preset for the link to a peer with the requested options, after a query of both ends' interfaces.

    Raises PeerError if the peer does not answer, and PlanError for options that the link cannot have.
    """
    # The far end is not started yet, and will use the same interface.
    if isinstance(peer, Peer) and peer.is_loopback:
        return select_preset(catalog, _LOOPBACK_NIC, _LOOPBACK_NIC, requested=requested)
    ends = await _query_ends(peer)
    is_far_unknown = isinstance(peer, Peer) and why_unavailable(peer, Feature.FAR_HOST) is not None
    return select_preset(catalog, ends.near.nic, ends.far.nic, requested=requested, is_far_unknown=is_far_unknown)


async def complete_spec(spec: RunSpec, far: "FarEnd") -> RunSpec:
    """Return a run with its preset and its rate of datagrams, and with notices about what was not typed.

    From a catalog it takes the preset that fits the interfaces of both ends, if any does; without one the run
    measures, and a notice says why its rate is not judged. A search has its rate already.

    Raises:
        PeerError: The peer does not answer.
        PlanError: The link cannot have the link options, or no rate is expected.
    """
    judging = spec.judging
    if isinstance(judging.preset, Catalog):
        selection = await pick_preset(judging.preset, far, judging.variant)
        judging = replace(judging, preset=selection.chosen, variant=selection.variant)
        spec = replace(spec, judging=judging).with_notices(*selection.notices)
    return await _with_sending_rate(spec, far)


async def _with_sending_rate(spec: RunSpec, far: "FarEnd") -> RunSpec:
    """Return a run of datagrams with its rate. The expected one depends on the IP version of a connection."""
    plan, rate, judging = spec.plan, spec.sending_rate, spec.judging
    if not plan.workload.is_datagram or plan.settings.searches_rate:
        return spec
    is_expected = judging.chosen is not None and (rate is None or rate == "expected")
    # A far end that is not started yet has no connection, and loopback the default version.
    is_known = is_expected and not (isinstance(far, Peer) and far.is_loopback)
    ends = await _query_ends(far) if is_known else None
    find = partial(judging.expect, plan, ip_version=None if ends is None else ends.ip_version)
    settings, notice = choose_rate(plan.settings, rate, find, judging.preset_id)
    paced = replace(spec, plan=replace(plan, settings=settings))
    return paced.with_notices(notice) if notice else paced


async def _query_ends(far: "FarEnd") -> "HandshakeResult":
    """Return the descriptions of both ends. The engine is imported late: the app's first frame does not need it."""
    from ...engine.near.connect import query_ends
    from .credentials import with_access

    return await query_ends(with_access(far) if isinstance(far, Peer) else far)
