"""Snapshots of the cockpit in its main states, from scripted runs."""

from typing import Any

import pytest
from linkgauge.engine.model.errors import PeerUnreachable
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan, Settings
from linkgauge.engine.model.workload import Workload

from ...app_driver import BOTH_SIZES, before_snapshot
from ...scripted_loads import emit_loads
from ...scripted_run import five_sessions_half_way

FAR = Peer("db-02")


@BOTH_SIZES
def test_idle(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The first steps, and the expected rate of the preset."""
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, None))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_running(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """A change of sessions in the plot, one core busy, a warning."""
    app = world.app(peer=FAR)
    assert snap_compare(
        app, terminal_size=size, run_before=before_snapshot(world, five_sessions_half_way, ends=False)
    )


@BOTH_SIZES
def test_running_duplex(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Three gauges, of which the total is judged."""
    plan = Plan(Settings(Direction.DUPLEX, 2), duration_ns=30 * SECOND_NS)
    app = world.app(peer=FAR, plan=plan)
    before = before_snapshot(world, lambda script: script.run_for(60, 7.2e9), ends=False)
    assert snap_compare(app, terminal_size=size, run_before=before)


def _emit_latency_under_load(script: Any) -> None:
    script.took_ns = (19_000_000, 24_000_000, 25_000_000, 31_000_000)
    script.run_for(40, 9.2e9)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_latency_under_load(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The probe's percentiles beside the plot, with the idle ones as ticks."""
    app = world.app(peer=FAR, plan=Plan(duration_ns=30 * SECOND_NS, probe=True))
    assert snap_compare(
        app, terminal_size=size, run_before=before_snapshot(world, _emit_latency_under_load, ends=False)
    )


def _emit_transactions(script: Any) -> None:
    script.took_ns = (*(641_000 + 3_000 * n for n in range(96)), 1_062_000, 1_071_000, 1_800_000, 19_000_000)
    script.run_for(40, 9.6e6)


@BOTH_SIZES
def test_running_transactions(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Transactions a second in the gauge and in the plot, with their latency."""
    app = world.app("zvm-qdio-1500", FAR, Plan(workload=Workload.RR, duration_ns=30 * SECOND_NS))
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, _emit_transactions, ends=False))


UDP = Plan(Settings(), Workload.UDP, duration_ns=30 * SECOND_NS)


def _emit_losses(script: Any) -> None:
    script.run_for(16, 957e6)
    for share in (0.0008, 0.004, 0.03, 0.12, 0.4):
        script.lost_share = share
        script.run_for(2, 957e6 * (1 - share))
        script.lost_share = 0.0
        script.run_for(6, 957e6)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_running_udp(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Loss, packets a second, jitter and delays beside the plot, and below it when datagrams were lost."""
    app = world.app("gbe-fd-1500", FAR, UDP)
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, _emit_losses, ends=False))


@BOTH_SIZES
def test_running_udp_duplex(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Two directions have a column and a strip each; a change of the rate begins their counts again."""
    plan = Plan(Settings(Direction.DUPLEX, 3, datagram_bytes=512), Workload.UDP, duration_ns=30 * SECOND_NS)

    def emit(script: Any) -> None:
        script.run_for(20, 200e6)
        script.change_settings(script.settings.with_changes(rate_bit_s=500_000_000))
        script.lost_share = 0.002
        script.run_for(40, 498e6)

    app = world.app("gbe-fd-1500", FAR, plan)
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, emit, ends=False))


@BOTH_SIZES
def test_finished_udp(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The losses of the whole run, and where they were."""

    def emit(script: Any) -> None:
        _emit_losses(script)
        script.drain()
        script.end()

    app = world.app("gbe-fd-1500", FAR, UDP)
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, emit))


@BOTH_SIZES
def test_finished_pass(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The run took its whole duration at the expected rate."""
    app = world.app(peer=FAR, plan=Plan(Settings(sessions=5), duration_ns=30 * SECOND_NS))
    before = before_snapshot(world, lambda script: (script.run_for(120, 9.38e9), script.end()))
    assert snap_compare(app, terminal_size=size, run_before=before)


@BOTH_SIZES
def test_finished_short(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """A verdict under the pass mark has a number, a mark and a word."""
    app = world.app(peer=FAR, plan=Plan(Settings(window_bytes=57_344), duration_ns=30 * SECOND_NS))
    before = before_snapshot(world, lambda script: (script.run_for(120, 5.5e9), script.end()))
    assert snap_compare(app, terminal_size=size, run_before=before)


@BOTH_SIZES
def test_no_expectation(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Loopback is measured and not judged."""
    app = world.app("loopback", LOOPBACK, Plan(duration_ns=None))
    before = before_snapshot(world, lambda script: script.run_for(50, 61e9), ends=False)
    assert snap_compare(app, terminal_size=size, run_before=before)


@BOTH_SIZES
def test_peer_refused(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The message names the remedy."""
    world.refusal = PeerUnreachable("db-02:5820 refused the connection: start linkgauge endpoint there")
    app = world.app(peer=FAR)
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, None))


@pytest.mark.parametrize("theme", ["textual-light", "no colour"])
def test_running_in_light_and_without_colour(
    snap_compare: Any, world: Any, monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    """A good result has a number, a mark and a word; the plot and the expected rate can be told apart."""
    if theme == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
    app = world.app(peer=FAR)
    if theme != "no colour":
        app.theme = theme
    assert snap_compare(
        app, terminal_size=(120, 40), run_before=before_snapshot(world, five_sessions_half_way, ends=False)
    )


IPERF3 = Peer.parse("iperf3://db-02")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])
def test_running_iperf3(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """Duplex against an iperf3 server: what it has acknowledged, nothing of its host, and keys that are fixed."""
    plan = Plan(Settings(Direction.DUPLEX, 2), duration_ns=30 * SECOND_NS)
    app = world.app(peer=IPERF3, plan=plan)
    before = before_snapshot(world, lambda script: script.run_for(60, 7.2e9), ends=False)
    assert snap_compare(app, terminal_size=size, run_before=before)


@BOTH_SIZES
@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
def test_finished_iperf3(snap_compare: Any, world: Any, size: tuple[int, int], workload: Workload) -> None:
    """The rate is that of its results, and the verdict says so; where its datagrams were lost is not known."""

    def emit(script: Any) -> None:
        script.run_for(120, 940e6)
        script.report_totals(910e6)
        script.end()

    app = world.app("gbe-fd-1500", IPERF3, Plan(Settings(), workload, duration_ns=30 * SECOND_NS))
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, emit))


def _emit_half_of_the_loads(script: Any) -> None:
    emit_loads(script, most=34)


ALL_SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=["80x24", "120x40", "200x60"])


@pytest.mark.every
@ALL_SIZES
def test_running_responsiveness(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The load in is measured, that of both is to come; rate above latency on one time axis."""
    app = world.app("100mb-fd", FAR)
    before = before_snapshot(world, _emit_half_of_the_loads, start="u", ends=False)
    assert snap_compare(app, terminal_size=size, run_before=before)


@ALL_SIZES
def test_finished_responsiveness(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The grade, every load with its rise, the round trips a minute, and where the queue is."""
    app = world.app("100mb-fd", FAR)
    assert snap_compare(app, terminal_size=size, run_before=before_snapshot(world, emit_loads, start="u"))


def test_finished_responsiveness_without_colour(
    snap_compare: Any, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grade is a letter, steps have marks, and both lines of the plot can be told apart."""
    monkeypatch.setenv("NO_COLOR", "1")
    app = world.app("100mb-fd", FAR)
    assert snap_compare(app, terminal_size=(120, 40), run_before=before_snapshot(world, emit_loads, start="u"))
