"""How payload is carried, in words: only what is not as always."""

import pytest
from linkgauge.engine.model.plan import Mode, Plan, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.text.plan import non_default_options_text


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Plan(), ""),
        (Plan(mode=Mode.DISCARD, block_bytes=131_072), "discard, blocks of 128K"),
        (Plan(workload=Workload.RR, block_bytes=131_072), ""),
        (Plan(socket=SocketOptions("bbr", 1_400, 46, nodelay=True)), "bbr, MSS 1400, DSCP 46, nodelay"),
        (Plan(socket=SocketOptions(source="10.0.0.2", device="eth1")), "from 10.0.0.2, on eth1"),
        (Plan(workers=1, near_cores=(0,), far_cores=(0,)), "1 worker, core 0 at both ends"),
        (Plan(workers=2, interval_ns=100_000_000), "2 workers, a sample every 0.1 s"),
        (Plan(warmup_ns=0), "warm-up 0 s"),
        (Plan(warmup_auto=True), "warm-up until the rate has settled"),
    ],
)
def test_what_is_not_as_always_is_said(plan: Plan, said: str) -> None:
    """Nothing of what a stream of 1M blocks is carried with anyway."""
    assert (
        non_default_options_text(plan).replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
        == said
    )
