"""Pictures of the cockpit in its main states, from scripted runs.

A state is drawn in the sizes that lay it out differently. The tests of its parts show how they fit other sizes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerError, PeerUnreachable
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload

from ..app_driver import before_snapshot
from ..scripted_loads import emit_loads
from ..scripted_run import ScriptedRun, five_sessions_half_way

FAR, IPERF3 = Peer("db-02"), Peer.parse("iperf3://db-02")
SMALL, WIDE, LARGE = (80, 24), (120, 40), (200, 60)
HALF_A_MINUTE = Plan(duration_ns=30 * SECOND_NS)
ONE_SESSION = Settings()
NO_COLOUR = "no colour"


@dataclass(frozen=True)
class State:
    """What is done in the cockpit before its picture; `emit` scripts a run, and ends it where `ends` says so."""

    sizes: tuple[tuple[int, int], ...]
    emit: Callable[[ScriptedRun], object] | None = None
    plan: Plan = HALF_A_MINUTE
    preset: str = "10gbe-fd-1500"
    peer: Peer = FAR
    start: str = "space"
    ends: bool = False
    theme: str | None = None
    refusal: PeerError | None = None
    is_rare: bool = False


def planned(settings: Settings = ONE_SESSION, workload: Workload = Workload.STREAM, **options: Any) -> Plan:
    """Return the plan of a run of 30 seconds."""
    return replace(HALF_A_MINUTE, settings=settings, workload=workload, **options)


def flow(intervals: int, bit_s: float, *, ends: bool = False) -> Callable[[ScriptedRun], None]:
    """Return a script of intervals at one rate."""

    def emit(script: ScriptedRun) -> None:
        script.run_for(intervals, bit_s)
        if ends:
            script.end()

    return emit


def _latency_under_load(script: ScriptedRun) -> None:
    script.took_ns = (19_000_000, 24_000_000, 25_000_000, 31_000_000)
    script.run_for(40, 9.2e9)


def _transactions(script: ScriptedRun) -> None:
    script.took_ns = (*(641_000 + 3_000 * n for n in range(96)), 1_062_000, 1_071_000, 1_800_000, 19_000_000)
    script.run_for(40, 9.6e6)


def _losses(script: ScriptedRun) -> None:
    script.run_for(16, 957e6)
    for share in (0.0008, 0.004, 0.03, 0.12, 0.4):
        script.lost_share = share
        script.run_for(2, 957e6 * (1 - share))
        script.lost_share = 0.0
        script.run_for(6, 957e6)


def _losses_to_the_end(script: ScriptedRun) -> None:
    _losses(script)
    script.drain()
    script.end()


def _losses_both_ways(script: ScriptedRun) -> None:
    script.run_for(20, 200e6)
    script.change_settings(script.settings.with_changes(rate_bit_s=500_000_000))
    script.lost_share = 0.002
    script.run_for(40, 498e6)


def _results_of_iperf3(script: ScriptedRun) -> None:
    script.run_for(120, 940e6)
    script.report_totals(910e6)
    script.end()


def _half_of_the_loads(script: ScriptedRun) -> None:
    emit_loads(script, most=34)


UDP = planned(workload=Workload.UDP)
DUPLEX = Settings(Direction.DUPLEX, 2)
REFUSAL = PeerUnreachable("db-02:5820 refused the connection: start linkgauge endpoint there")
GBE, UNDER_LOAD = "gbe-fd-1500", "100mb-fd"
STATES = {
    # The first steps, and the expected rate of the preset.
    "idle": State((SMALL, WIDE)),
    # A change of sessions in the plot, one core busy, a warning.
    "running": State((SMALL, WIDE, LARGE), five_sessions_half_way),
    # A good result has a number, a mark and a word; the plot and the expected rate can be told apart.
    "running_light": State((WIDE,), five_sessions_half_way, theme="textual-light"),
    "running_no_colour": State((WIDE,), five_sessions_half_way, theme=NO_COLOUR),
    # Three gauges, of which the total is judged.
    "running_duplex": State((SMALL, WIDE), flow(60, 7.2e9), planned(DUPLEX)),
    # The probe's percentiles beside the plot, with the idle ones as ticks.
    "latency": State((SMALL, LARGE), _latency_under_load, planned(probe=True)),
    # Transactions a second in the gauge and in the plot, with their latency.
    "transactions": State((WIDE,), _transactions, planned(workload=Workload.RR), "zvm-qdio-1500"),
    # Loss, packets a second, jitter and delays beside the plot, and below it when datagrams were lost.
    "running_udp": State((SMALL, WIDE), _losses, UDP, GBE),
    # Two directions have a column and a strip each; a change of the rate begins their counts again.
    "running_udp_duplex": State(
        (WIDE,), _losses_both_ways, planned(Settings(Direction.DUPLEX, 3, datagram_bytes=512), Workload.UDP), GBE
    ),
    # The losses of the whole run, and where they were.
    "finished_udp": State((SMALL,), _losses_to_the_end, UDP, GBE, ends=True),
    # A verdict has a number, a mark and a word.
    "finished_pass": State((WIDE,), flow(120, 9.38e9, ends=True), planned(Settings(sessions=5)), ends=True),
    "finished_short": State(
        (SMALL,), flow(120, 5.5e9, ends=True), planned(Settings(window_bytes=57_344)), ends=True
    ),
    # Loopback is measured and not judged.
    "no_expectation": State((SMALL,), flow(50, 61e9), Plan(duration_ns=None), "loopback", LOOPBACK),
    # The message names the remedy.
    "refused": State((SMALL,), refusal=REFUSAL),
    # What an iperf3 server has acknowledged, nothing of its host, and keys that are fixed.
    "running_iperf3": State((WIDE,), flow(60, 7.2e9), planned(DUPLEX), peer=IPERF3),
    # The rate is that of its results, and the verdict says so; where its datagrams were lost is not known.
    "finished_iperf3": State((SMALL,), _results_of_iperf3, HALF_A_MINUTE, GBE, IPERF3, ends=True),
    "finished_iperf3_udp": State((WIDE,), _results_of_iperf3, UDP, GBE, IPERF3, ends=True),
    # The load in is measured, that of both is to come; rate above latency on one time axis.
    "running_responsiveness": State((WIDE,), _half_of_the_loads, preset=UNDER_LOAD, start="u", is_rare=True),
    # The grade, every load with its rise, the round trips a minute, and where the queue is.
    "finished_responsiveness": State((WIDE,), emit_loads, preset=UNDER_LOAD, start="u", ends=True),
    # The grade is a letter, steps have marks, and both lines of the plot can be told apart.
    "finished_responsiveness_no_colour": State(
        (WIDE,), emit_loads, preset=UNDER_LOAD, start="u", ends=True, theme=NO_COLOUR
    ),
}


def cases() -> Iterator[Any]:
    """Yield each state in each of its sizes."""
    for name, state in STATES.items():
        for size in state.sizes:
            marks = [pytest.mark.every] if state.is_rare else []
            yield pytest.param(state, size, id=f"{name}-{size[0]}x{size[1]}", marks=marks)


@pytest.mark.parametrize(("state", "size"), cases())
def test_cockpit(
    snap_compare: Any, world: Any, monkeypatch: pytest.MonkeyPatch, state: State, size: tuple[int, int]
) -> None:
    """Each state looks as it did."""
    if state.theme == NO_COLOUR:
        monkeypatch.setenv("NO_COLOR", "1")
    world.refusal = state.refusal
    app = world.app(state.preset, state.peer, state.plan)
    if state.theme not in {None, NO_COLOUR}:
        app.theme = state.theme
    before = before_snapshot(world, state.emit, start=state.start, ends=state.ends)
    assert snap_compare(app, terminal_size=size, run_before=before)
