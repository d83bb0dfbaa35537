"""The features of an endpoint that another program lacks, each with the reason: iperf3, a browser, speed servers.

Pure. No other place knows them: the command line refuses such options before anything is opened, and the app
disables such keys.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from ...model.directions import Direction
from ...model.errors import PlanError
from ...model.peer import Peer
from ...model.plan import MAX_BROWSER_SESSIONS, MIB, Plan, format_size
from ...model.speed_server import SpeedProtocol, SpeedServer
from ...model.workload import Workload

MAX_IPERF3_WINDOW_BYTES: Final = 512 * MIB
MAX_IPERF3_BLOCK_BYTES: Final = MIB
MAX_SPEED_SESSIONS: Final = {SpeedProtocol.LIBRESPEED: 32, SpeedProtocol.NDT7: 1}
_ENDPOINT: Final = "run linkgauge endpoint on that host for it"


class Feature(StrEnum):
    """A feature that the user may want of a far end."""

    LIVE_CHANGES = "live changes"
    TRANSACTIONS = "transactions"
    PROBE = "probe"
    RATE_SEARCH = "rate search"
    PATH_MTU = "path MTU"
    FAR_CORES = "remote cores"
    FAR_CPU = "remote CPU"
    FAR_HOST = "remote host"
    KEY = "key"
    WORKLOADS = "workloads"
    WINDOW = "window"
    LOAD_PHASES = "load phases"
    NO_PROBE = "no probe"
    TURNS = "turns"


_IPERF3_LACKS: Final = {
    Feature.LIVE_CHANGES: "iperf3 cannot change a test that runs: stop it, and start another one",
    Feature.TRANSACTIONS: f"iperf3 has streams and datagrams only; {_ENDPOINT}",
    Feature.PROBE: f"iperf3 answers no probe; {_ENDPOINT}",
    Feature.LOAD_PHASES: f"iperf3 answers no probe; {_ENDPOINT}",
    Feature.RATE_SEARCH: f"iperf3 reports losses only at the end of a test; {_ENDPOINT}",
    Feature.PATH_MTU: f"iperf3 has no such measurement; {_ENDPOINT}",
    Feature.FAR_CORES: "an iperf3 server chooses its cores itself: start it with iperf3 -s -A CORE",
    Feature.FAR_CPU: "iperf3 reports only the CPU time of its process, at the end of a test",
    Feature.FAR_HOST: "iperf3 does not describe its host",
    Feature.TURNS: "an iperf3 server has one test at a time, refuses others and lets none wait; leave it out",
    Feature.KEY: "an iperf3 server knows users, not keys: give iperf3://USER@HOST",
}

_BROWSER_LACKS: Final = {
    Feature.TRANSACTIONS: "a browser has streams only",
    Feature.WORKLOADS: "a browser has streams only",
    Feature.WINDOW: "a browser chooses its window itself",
    Feature.LOAD_PHASES: "every test with a browser measures latency under load: start one",
    Feature.PROBE: "the latency of a page is measured in every test",
    Feature.NO_PROBE: "a page is pinged in every test: its answers are the latency, and show that it is awake",
    Feature.RATE_SEARCH: "a browser sends no datagrams",
    Feature.PATH_MTU: "a browser has no such measurement",
    Feature.FAR_CORES: "a browser chooses its cores itself",
    Feature.FAR_CPU: "a browser does not tell of its CPU",
    Feature.FAR_HOST: "a browser does not describe its host",
    Feature.TURNS: "a device has one test at a time",
    Feature.KEY: "a device joins by a code",
}


def _speed_server_lacks(name: str) -> dict[Feature, str]:
    return {
        Feature.LIVE_CHANGES: f"{name} cannot change a test that runs: stop it, and start another one",
        Feature.TRANSACTIONS: f"{name} has streams only; {_ENDPOINT}",
        Feature.WORKLOADS: f"{name} has streams only; {_ENDPOINT}",
        Feature.WINDOW: f"{name} chooses its window itself; {_ENDPOINT}",
        Feature.LOAD_PHASES: f"{name} has no test in phases; {_ENDPOINT}",
        Feature.RATE_SEARCH: f"{name} takes no datagrams; {_ENDPOINT}",
        Feature.PATH_MTU: f"{name} has no such measurement; {_ENDPOINT}",
        Feature.FAR_CORES: f"{name} chooses its cores itself",
        Feature.FAR_CPU: f"{name} does not tell of its CPU",
        Feature.FAR_HOST: f"{name} does not describe its host",
        Feature.TURNS: f"{name} lets no test wait; leave it out",
        Feature.KEY: f"{name} asks for no key",
    }


_SPEED_SERVERS_LACK: Final = {
    SpeedProtocol.LIBRESPEED: _speed_server_lacks(SpeedProtocol.LIBRESPEED.label),
    SpeedProtocol.NDT7: _speed_server_lacks(SpeedProtocol.NDT7.label)
    | {Feature.PROBE: f"NDT7 answers no probe: the round trips are those of TCP; {_ENDPOINT}"},
}


def why_unavailable(peer: Peer, feature: Feature) -> str | None:
    """Return why a feature is not available with a peer, for the user; None if it is."""
    if peer.is_browser:
        return _BROWSER_LACKS.get(feature)
    if peer.speed is not None:
        return _SPEED_SERVERS_LACK[peer.speed.protocol].get(feature)
    return None if peer.iperf3 is None else _IPERF3_LACKS.get(feature)


def most_sessions(peer: Peer) -> int | None:
    """Return the maximum of sessions in a direction that a peer sets; None if it sets none."""
    if peer.speed is not None:
        return MAX_SPEED_SESSIONS[peer.speed.protocol]
    return MAX_BROWSER_SESSIONS if peer.is_browser else None


def find_unsupported(plan: Plan, peer: Peer) -> PlanError | None:
    """Return the first part of a plan that a peer cannot carry out; None if it can do all."""
    if peer.is_browser:
        return next(_unsupported_by_browser(plan), None)
    if peer.speed is not None:
        return next(_unsupported_by_speed_server(plan, peer.speed), None)
    return None if peer.iperf3 is None else next(_unsupported_by_iperf3(plan, peer), None)


def _unsupported_by_speed_server(plan: Plan, server: SpeedServer) -> Iterator[PlanError]:
    lacks, settings, name = _SPEED_SERVERS_LACK[server.protocol], plan.settings, server.protocol.label
    place, most = f"with {name}", MAX_SPEED_SESSIONS[server.protocol]
    if plan.workload is not Workload.STREAM:
        yield PlanError("workload", f"{plan.workload} {place}", lacks[Feature.WORKLOADS])
    if settings.sessions > most:
        only = "a test has one connection: give --sessions 1" if most == 1 else f"give at most {most}"
        yield PlanError("sessions", f"{settings.sessions} {place}", only)
    if settings.direction is Direction.DUPLEX and server.protocol is SpeedProtocol.NDT7:
        yield PlanError("direction", f"duplex {place}", "a test has one direction: give --direction out or in")
    if plan.probe and Feature.PROBE in lacks:
        yield PlanError("probe", place, lacks[Feature.PROBE])
    for is_wanted, field, reason in (
        (settings.window_bytes is not None, "window", lacks[Feature.WINDOW]),
        (plan.path, "path", lacks[Feature.PATH_MTU]),
        (plan.responsiveness is not None, "responsiveness", lacks[Feature.LOAD_PHASES]),
        (plan.far_cores is not None, "far cores", lacks[Feature.FAR_CORES]),
        (plan.exclusive, "exclusive", lacks[Feature.TURNS]),
        (plan.wait_ns > 0, "wait", lacks[Feature.TURNS]),
        (plan.rate_bit_s is not None, "rate", "it sends and takes as fast as it can; leave it out"),
        (plan.bytes_limit is not None, "bytes", "a test has a duration: give --seconds"),
        (plan.block_bytes != Plan().block_bytes, "block size", "its protocol decides the size; leave it out"),
    ):
        if is_wanted:
            yield PlanError(field, place, reason)


def _unsupported_by_browser(plan: Plan) -> Iterator[PlanError]:
    sessions, browser = plan.settings.sessions, "with a browser"
    if plan.workload is not Workload.STREAM:
        yield PlanError("workload", f"{plan.workload} {browser}", _BROWSER_LACKS[Feature.WORKLOADS])
    if sessions > MAX_BROWSER_SESSIONS:
        yield PlanError("sessions", f"{sessions} {browser}", f"give at most {MAX_BROWSER_SESSIONS}")
    for is_wanted, field, reason in (
        (plan.settings.window_bytes is not None, "window", _BROWSER_LACKS[Feature.WINDOW]),
        (plan.has_phases, "responsiveness", _BROWSER_LACKS[Feature.LOAD_PHASES]),
        (plan.far_cores is not None, "far cores", _BROWSER_LACKS[Feature.FAR_CORES]),
        (plan.exclusive, "exclusive", _BROWSER_LACKS[Feature.TURNS]),
        (plan.wait_ns > 0, "wait", _BROWSER_LACKS[Feature.TURNS]),
        (plan.rate_bit_s is not None, "rate", "a browser sends as fast as it can"),
        (plan.bytes_limit is not None, "bytes", "a test with a browser has a duration"),
        (plan.client_port is not None, "client port", "a browser opens the connections, and chooses their ports"),
    ):
        if is_wanted:
            yield PlanError(field, browser, reason)


def _unsupported_by_iperf3(plan: Plan, peer: Peer) -> Iterator[PlanError]:
    host = f"with {peer}"
    features = (
        (plan.workload.is_transactional, "workload", plan.workload, Feature.TRANSACTIONS),
        (plan.probe, "probe", "", Feature.PROBE),
        (plan.settings.searches_rate, "rate", "search", Feature.RATE_SEARCH),
        (plan.far_cores is not None, "far cores", "", Feature.FAR_CORES),
        (plan.exclusive, "exclusive", "", Feature.TURNS),
        (plan.wait_ns > 0, "wait", "", Feature.TURNS),
    )
    for is_wanted, field, value, feature in features:
        if is_wanted:
            yield PlanError(field, f"{value} {host}".lstrip(), _IPERF3_LACKS[feature])
    for field, size, most in (
        ("window", plan.settings.window_bytes, MAX_IPERF3_WINDOW_BYTES),
        ("block size", None if plan.workload.is_datagram else plan.block_bytes, MAX_IPERF3_BLOCK_BYTES),
    ):
        if size is not None and size > most:
            yield PlanError(field, f"{format_size(size)} {host}", f"iperf3 takes at most {format_size(most)}")
