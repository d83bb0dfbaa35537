"""A plan's options in words: only those that differ from the default, and the cores of each end."""

import pytest
from linkgauge.engine.model.plan import Mode, Plan, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.words.plan import core_affinity_text, non_default_options_text


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (Plan(), ""),
        (Plan(mode=Mode.DISCARD, block_bytes=131_072), "discard, blocks of 128K"),
        (Plan(workload=Workload.RR, block_bytes=131_072), ""),
        (Plan(socket=SocketOptions("bbr", 1_400, 46, nodelay=True)), "bbr, MSS 1400, DSCP 46, nodelay"),
        (Plan(socket=SocketOptions(source="10.0.0.2", device="eth1")), "from 10.0.0.2, on eth1"),
        (Plan(workers=1, near_cores=(0,), far_cores=(0,)), "1 worker, core 0 on both hosts"),
        (Plan(workers=2, interval_ns=100_000_000), "2 workers, interval 0.1 s"),
        (Plan(warmup_ns=0), "warm-up 0 s"),
        (Plan(warmup_auto=True), "automatic warm-up"),
    ],
)
def test_unusual_settings_are_shown(plan: Plan, sentence: str) -> None:
    """Nothing of what a stream of 1M blocks is carried with anyway."""
    assert (
        non_default_options_text(plan).replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")
        == sentence
    )


@pytest.mark.parametrize(
    ("near", "far", "words"),
    [
        (None, None, ""),
        ((1, 0), (1, 0), "cores 0-1 on both hosts"),
        ((3,), (3,), "core 3 on both hosts"),
        ((0, 2), None, "local cores 0, 2"),
        ((0,), (5, 6, 7), "local core 0, remote cores 5-7"),
    ],
)
def test_cores_are_named_for_each_end(
    near: tuple[int, ...] | None, far: tuple[int, ...] | None, words: str
) -> None:
    """They ascend, consecutive ones as a range; the text is empty if the kernel chooses."""
    assert core_affinity_text(Plan(near_cores=near, far_cores=far)).replace("\N{NO-BREAK SPACE}", " ") == words
