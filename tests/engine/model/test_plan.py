"""Plans: every limit refuses with the field, what was given and what is allowed."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.plan import (
    MAX_DURATION_NS,
    MAX_SESSIONS,
    MAX_WINDOW_BYTES,
    MIN_WINDOW_BYTES,
    SECOND_NS,
    Mode,
    Plan,
    Settings,
    SocketOptions,
)
from linkgauge.engine.model.workload import Workload, all_workloads


@pytest.mark.parametrize(
    ("kind", "field", "wrong"),
    [
        (Settings, "sessions", {"sessions": 0}),
        (Settings, "sessions", {"sessions": -1}),
        (Settings, "sessions", {"sessions": MAX_SESSIONS + 1}),
        (Settings, "window", {"window_bytes": 0}),
        (Settings, "window", {"window_bytes": MIN_WINDOW_BYTES - 1}),
        (Settings, "window", {"window_bytes": MAX_WINDOW_BYTES + 1}),
        (Plan, "duration", {"duration_ns": 0}),
        (Plan, "duration", {"duration_ns": MAX_DURATION_NS + 1}),
        (Plan, "interval", {"interval_ns": 0}),
        (Plan, "interval", {"interval_ns": 11 * SECOND_NS}),
        (Plan, "warm-up", {"warmup_ns": -1}),
        (Plan, "warm-up", {"warmup_ns": 10 * SECOND_NS}),
        (Plan, "warm-up", {"warmup_ns": MAX_DURATION_NS, "duration_ns": None}),
        (Plan, "block size", {"block_bytes": 63}),
        (Plan, "block size", {"block_bytes": 2**25}),
        (Plan, "workers", {"workers": 0}),
        (Plan, "workers", {"workers": 65}),
        (Plan, "cores", {"near_cores": (0, -1)}),
        (Plan, "far cores", {"far_cores": (1024,)}),
        (SocketOptions, "congestion control", {"congestion": ""}),
        (SocketOptions, "congestion control", {"congestion": "x" * 16}),
        (SocketOptions, "congestion control", {"congestion": "cu bic"}),
        (SocketOptions, "congestion control", {"congestion": "../bbr"}),
        (SocketOptions, "congestion control", {"congestion": "bbr\n"}),
        (SocketOptions, "MSS", {"mss_bytes": 87}),
        (SocketOptions, "MSS", {"mss_bytes": 32_768}),
        (SocketOptions, "DSCP", {"dscp": -1}),
        (SocketOptions, "DSCP", {"dscp": 64}),
        (SocketOptions, "source", {"source": ""}),
        (SocketOptions, "source", {"source": "192.0.2.1 "}),
        (SocketOptions, "device", {"device": "eth0\x00"}),
        (SocketOptions, "device", {"device": "e" * 65}),
        (Plan, "rate", {"rate_bit_s": 999}),
        (Plan, "rate", {"rate_bit_s": 10**9, "workload": Workload.RR}),
        (Plan, "bytes", {"bytes_limit": 0}),
        (Plan, "probe", {"probe": True, "workload": Workload.RR}),
        (Plan, "client port", {"client_port": 0}),
        (Plan, "client port", {"client_port": 65_535, "settings": Settings(sessions=2)}),
        (Plan, "client port", {"client_port": 5_000, "workload": Workload.CRR}),
        (Plan, "path port", {"path_port": 65_536}),
        (Plan, "request", {"request_bytes": 1}),
        (Plan, "response", {"response_bytes": 1}),
        (Plan, "burst", {"burst": 2}),
        (Plan, "burst", {"workload": Workload.FETCH, "burst": 2}),
        (Plan, "burst", {"workload": Workload.RR, "burst": 0}),
        (Plan, "burst", {"workload": Workload.RR, "burst": 1_025}),
        (Plan, "busy-poll", {"busy_poll": True}),
        (Plan, "busy-poll", {"workload": Workload.CRR, "busy_poll": True}),
        (Plan, "busy-poll", {"workload": Workload.RR, "burst": 2, "busy_poll": True}),
        (Plan, "request", {"workload": Workload.RR, "request_bytes": 0}),
        (Plan, "burst", {"workload": Workload.RR, "request_bytes": 1 << 20, "burst": 17}),
        (Plan, "response", {"workload": Workload.RR, "response_bytes": (1 << 30) + 1}),
        (Plan, "request", {"workload": Workload.CRR, "request_bytes": 31}),
    ],
)
def test_what_no_run_can_have_is_refused_by_its_field(
    kind: type[Plan | Settings | SocketOptions], field: str, wrong: dict[str, Any]
) -> None:
    """Its text says that it is invalid, and drives no terminal."""
    with pytest.raises(PlanError, match="is invalid") as caught:
        kind(**wrong)
    assert caught.value.field == field
    assert str(caught.value).isprintable()


def test_the_warm_up_is_a_fifth_of_the_run_and_at_most_a_second() -> None:
    """Unless it was asked for."""
    assert Plan().effective_warmup_ns == SECOND_NS
    assert Plan(duration_ns=SECOND_NS).effective_warmup_ns == SECOND_NS // 5
    assert Plan(duration_ns=None).effective_warmup_ns == SECOND_NS
    assert Plan(warmup_ns=0).effective_warmup_ns == 0
    assert Plan(warmup_ns=3 * SECOND_NS).effective_warmup_ns == 3 * SECOND_NS


def test_changed_settings_keep_what_is_not_named() -> None:
    """A window can be taken away, and what is not possible stays so."""
    settings = Settings(Direction.IN, 5, 65_536)
    assert settings.with_changes() == settings
    assert settings.with_changes(sessions=6) == Settings(Direction.IN, 6, 65_536)
    assert settings.with_changes(window_bytes="auto").window_bytes is None
    assert settings.with_changes(direction=Direction.OUT, window_bytes=4096) == Settings(Direction.OUT, 5, 4096)
    with pytest.raises(PlanError):
        settings.with_changes(sessions=0)


def test_a_run_of_a_number_of_bytes_has_no_warm_up_unless_one_is_given() -> None:
    """Its transfer may be over in less."""
    assert Plan(bytes_limit=1, duration_ns=None).effective_warmup_ns == 0
    assert Plan(bytes_limit=1, warmup_ns=SECOND_NS).effective_warmup_ns == SECOND_NS


def test_a_workload_has_default_sizes() -> None:
    """Those of the documents; with others their rates do not hold."""
    plan = Plan(workload=Workload.RR)
    assert plan.transaction_sizes == (200, 1_000)
    assert plan.has_documented_transactions
    assert Plan(workload=Workload.CRR, response_bytes=1).transaction_sizes == (64, 1)
    assert not Plan(workload=Workload.CRR, response_bytes=1).has_documented_transactions
    assert not Plan(workload=Workload.RR, burst=2).has_documented_transactions


@pytest.mark.parametrize("workload", all_workloads())
def test_the_sending_host_chooses_the_mode_of_a_stream_that_names_none_for_it(workload: Workload) -> None:
    """Discard is the receiver's. Without a mode, transactions are copied; datagrams have modes of their own."""
    assert Plan(workload=workload).sender_chooses_mode is (workload is Workload.STREAM)
    modes = [mode for mode in Mode if mode.is_for_datagrams is workload.is_datagram]
    chosen = {mode for mode in modes if Plan(workload=workload, mode=mode).sender_chooses_mode}
    assert chosen == ({Mode.DISCARD} if workload is Workload.STREAM else set())


def udp_plan(sessions: int, datagram_bytes: int | None, seconds: int = 3) -> Plan:
    """Return a test of datagrams at 2 kb/s."""
    settings = Settings(sessions=sessions, rate_bit_s=2_000, datagram_bytes=datagram_bytes)
    return Plan(settings, Workload.UDP, duration_ns=seconds * SECOND_NS)


def test_a_rate_too_low_for_its_datagrams_is_refused_with_the_numbers() -> None:
    """One datagram of each session would measure nothing."""
    with pytest.raises(PlanError, match=r"one datagram of 1400 bytes every 5\.6 s, fewer than 2 in 3 s"):
        udp_plan(1, 1_400)
    with pytest.raises(PlanError, match=r"one datagram of 24 bytes every 12\.3 s, fewer than 2 in 3 s"):
        udp_plan(128, None)
    udp_plan(1, 1_400, seconds=12)


def test_datagrams_of_a_low_rate_are_small_enough_for_several_a_second() -> None:
    """Those of a usual rate are as large as the path carries."""
    assert udp_plan(1, None).settings.slow_datagram_bytes == 25
    assert Settings(rate_bit_s=32_000, sessions=16).slow_datagram_bytes == 25
    assert (Settings(rate_bit_s=10_000_000).slow_datagram_bytes or 0) > 1_472
    assert Settings().slow_datagram_bytes is None
