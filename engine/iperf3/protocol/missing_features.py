"""The features of an endpoint that an iperf3 server lacks, each with the reason.

Pure. No other place knows them: the command line refuses such options before anything is opened, and the app
disables such keys.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from ...model.errors import PlanError
from ...model.peer import Peer
from ...model.plan import MIB, Plan, format_size

MAX_IPERF3_WINDOW_BYTES: Final = 512 * MIB
MAX_IPERF3_BLOCK_BYTES: Final = MIB
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
    TURNS = "turns"


_IPERF3_LACKS: Final = {
    Feature.LIVE_CHANGES: "iperf3 cannot change a test that runs: stop it, and start another one",
    Feature.TRANSACTIONS: f"iperf3 has streams and datagrams only; {_ENDPOINT}",
    Feature.PROBE: f"iperf3 answers no probe; {_ENDPOINT}",
    Feature.RATE_SEARCH: f"iperf3 reports losses only at the end of a test; {_ENDPOINT}",
    Feature.PATH_MTU: f"iperf3 has no such measurement; {_ENDPOINT}",
    Feature.FAR_CORES: "an iperf3 server chooses its cores itself: start it with iperf3 -s -A CORE",
    Feature.FAR_CPU: "iperf3 reports only the CPU time of its process, at the end of a test",
    Feature.FAR_HOST: "iperf3 does not describe its host",
    Feature.TURNS: "an iperf3 server has one test at a time, refuses others and lets none wait; leave it out",
    Feature.KEY: "an iperf3 server knows users, not keys: give iperf3://USER@HOST",
}


def why_unavailable(peer: Peer, feature: Feature) -> str | None:
    """Return why a feature is not available with a peer, for the user; None if it is."""
    return None if peer.iperf3 is None else _IPERF3_LACKS[feature]


def find_unsupported(plan: Plan, peer: Peer) -> PlanError | None:
    """Return the first part of a plan that a peer cannot carry out; None if it can do all."""
    return None if peer.iperf3 is None else next(_unsupported_by_iperf3(plan, peer), None)


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
