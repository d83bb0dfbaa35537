"""The pass marks of a test beside its rate, and how a responsiveness test loads the link."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...engine.model.directions import Direction
from ...engine.model.errors import UsageError
from ...engine.model.peer import Peer
from ...engine.model.plan import Plan, SocketOptions
from ...engine.model.workload import Workload
from ...engine.protocol.foreign.missing_features import Feature, why_unavailable
from ...engine.results.responsiveness.plan import LOAD_SESSIONS, responsiveness_plan, with_path, with_responsiveness
from ..words import parsing
from .click_extension.option_fields import flag, option
from .plan_options import TEST, congestion_option, device_option, dscp_option, source_option

if TYPE_CHECKING:
    from ...presets.verdict import AcceptanceLimits, LatencyLimit

# A section of the help.
_LATENCY: Final = "Latency under load"
_LIMITS: Final = "Limits of every test"


@dataclass(frozen=True, slots=True)
class LatencyOptions:
    """The pass marks of latency under load."""

    max_rise: str | None = option(
        _LATENCY,
        "Largest rise of latency under load that is a pass, in milliseconds, in each direction.",
        brief="Largest rise that is a pass, in milliseconds.",
        metavar="MS",
    )
    grade: str | None = option(
        _LATENCY,
        "Lowest grade of latency under load that is a pass: A+, A, B, C or D.",
        brief="Lowest grade that is a pass: A+, A, B, C or D.",
        metavar="GRADE",
    )

    def limit(self) -> "LatencyLimit | None":
        """Return the pass marks; None without any. Raise PlanError for a bad one."""
        if self._given is None:
            return None
        from ...presets.verdict import LatencyLimit

        return LatencyLimit(
            None if self.max_rise is None else parsing.rise_ns(self.max_rise),
            None if self.grade is None else parsing.grade(self.grade),
        )

    def apply_to(self, plan: Plan, peer: Peer) -> Plan:
        """Return a plan that measures latency under load too, if it is to be judged; raise UsageError."""
        given = self._given
        if given is None:
            return plan
        self.check_workload(plan.workload)
        check_measurable(peer, given)
        return with_responsiveness(plan)

    def check_workload(self, workload: Workload) -> None:
        """Raise UsageError for a pass mark of latency beside a workload that loads no link with TCP."""
        if self._given is not None and workload is not Workload.STREAM:
            raise UsageError(f"{self._given} is for TCP streams; leave it out, or --workload {workload}")

    @property
    def _given(self) -> str | None:
        """The option that was given."""
        if self.max_rise is not None:
            return "--max-rise"
        return None if self.grade is None else "--grade"


def check_measurable(peer: Peer, wanted: str) -> None:
    """Raise UsageError if a peer cannot measure latency under load; `wanted` is the option that asks for it."""
    reason = why_unavailable(peer, Feature.LOAD_PHASES)
    if reason is not None:
        raise UsageError(f"{wanted} cannot be had of {peer}: {reason}")
    if peer.ssh is not None and peer.ssh.is_data_tunneled:
        raise UsageError(f"{wanted} with --via-ssh would measure ssh's own queue; leave out --via-ssh")


def names_flag() -> Any:
    """Return the flag for the names of routers."""
    return flag(_LATENCY, "Look up the names of the routers (reverse DNS).")


@dataclass(frozen=True, slots=True)
class PathOptions:
    """Whether both ends trace the hops between them."""

    path: bool = flag(
        _LATENCY,
        "Trace the hops in both directions under load, and say which one has the queue or the loss.",
    )
    names: bool = names_flag()

    def apply_to(self, plan: Plan, peer: Peer) -> Plan:
        """Return a plan that traces the path, if that is wanted; raise UsageError if that is not possible."""
        if not self.path:
            if self.names:
                raise UsageError("--names looks up the routers of a path; give --path as well")
            return plan
        return traced_plan(plan, peer, "--path")


def traced_plan(plan: Plan, peer: Peer, wanted: str) -> Plan:
    """Return a plan that traces the path under its load; `wanted` is what asks for it. Raises UsageError."""
    check_measurable(peer, wanted)
    if plan.workload is not Workload.STREAM:
        raise UsageError(f"{wanted} is for TCP streams; leave it out, or --workload {plan.workload}")
    return with_path(plan)


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """What every test of a mesh or a watch must keep, whatever rate its link should have."""

    max_loss: str | None = option(
        _LIMITS,
        "Largest lost share that is a pass, in percent: segments sent again, or datagrams.",
        metavar="PERCENT",
    )
    min_rate: str | None = option(_LIMITS, "Lowest goodput that is a pass: 100M, 2.5G.", metavar="RATE")
    max_rise: str | None = option(
        _LIMITS,
        "Largest rise of latency under load that is a pass, in milliseconds; each test then measures it.",
        metavar="MS",
    )

    def to_limits(self, workload: Workload) -> "AcceptanceLimits":
        """Return the limits. Raises PlanError, or UsageError for one that the workload has no figure for."""
        from ...presets.verdict import AcceptanceLimits

        for name, given in (("--max-loss", self.max_loss), ("--min-rate", self.min_rate)):
            if given is not None and workload is Workload.RR:
                raise UsageError(f"{name} is for streams and datagrams; leave it out, or --workload rr")
        self._latency.check_workload(workload)
        latency = self._latency.limit()
        return AcceptanceLimits(
            None if self.max_loss is None else parsing.loss_limit(self.max_loss),
            None if self.min_rate is None else parsing.minimum_rate_bit_s(self.min_rate),
            None if latency is None else latency.max_rise_ns,
        )

    def apply_to(self, plan: Plan) -> Plan:
        """Return a plan that measures latency under load too, if it is to be judged."""
        return plan if self.max_rise is None else with_responsiveness(plan)

    @property
    def arguments(self) -> list[str]:
        """The same options as words of a command line."""
        given = {"--max-loss": self.max_loss, "--min-rate": self.min_rate, "--max-rise": self.max_rise}
        return [word for name, value in given.items() if value is not None for word in (name, value)]

    @property
    def _latency(self) -> LatencyOptions:
        return LatencyOptions(self.max_rise, None)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The load of a responsiveness test."""

    direction: Direction | None = option(
        TEST,
        "Load only this direction: out this host sends, in the remote host, duplex both at once.",
        brief="Load only this direction. [out, in, then both]",
        shown="out, then in, then both",
    )
    sessions: str = option(
        TEST,
        "TCP connections in each direction, 1 to 128; up to twice as many if the rate is not steady.",
        "-P",
        brief="TCP connections in each direction. [8]",
        default=str(LOAD_SESSIONS),
        metavar="N",
    )
    congestion: str | None = congestion_option(TEST)
    dscp: str | None = dscp_option(TEST)
    source: str | None = source_option(TEST)
    device: str | None = device_option(TEST)

    def to_plan(self) -> Plan:
        """Return the plan; raise PlanError for the first bad value."""
        socket = SocketOptions(
            congestion=self.congestion,
            dscp=None if self.dscp is None else parsing.integer(self.dscp, "DSCP", "give 0 to 63 (RFC 2474)"),
            source=self.source,
            device=self.device,
        )
        return responsiveness_plan(self.direction, parsing.sessions(self.sessions), socket)
