"""The keys that step settings, in the current run and for the next one, and what a far end refuses."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.protocol.foreign.missing_features import Feature, why_unavailable

from ..stored_runs import notifications

IPERF3 = Peer.parse("iperf3://db-02")
LIVE = why_unavailable(IPERF3, Feature.LIVE_CHANGES)


@pytest.mark.parametrize(
    ("begin", "steps"),
    [
        # One step a key press, up to the most that a run may have; from a number that is no step to the next one.
        (
            Plan(duration_ns=30 * SECOND_NS),
            [
                (["+", "=", "+"], "[5]"),
                (["+"] * 8, "[128]"),
                # From auto up, and down to auto again.
                (["]", *["["] * 3], "[56K]"),
                (["]"] * 9, "[4M]"),
                (["["] * 11, "[auto]"),
                # Around the directions and the durations.
                (["d"], "[in]"),
                (["d"], "[duplex]"),
                (["d"], "[out]"),
                (["t"], "[60 s]"),
                (["t"], "[5 min]"),
                (["t", "t"], "[5 s]"),
            ],
        ),
        (Plan(Settings(sessions=7)), [(["-"], "[5]"), (["_", *["-"] * 6], "[1]")]),
    ],
    ids=["up", "down"],
)
async def test_a_key_goes_through_the_steps_of_its_setting(
    world: Any, begin: Plan, steps: list[tuple[list[str], str]]
) -> None:
    """The value in force is in brackets."""
    async with world.cockpit(plan=begin) as cockpit:
        for keys, shown in steps:
            await cockpit.press(*keys)
            assert shown in cockpit.line(2)


async def test_the_expected_rate_follows_the_direction(world: Any) -> None:
    """Both directions together may carry more than one."""
    async with world.cockpit() as cockpit:
        await cockpit.press("d", "d")
        assert "14.4 Gb/s" in cockpit.line(1)


async def test_setting_keys_change_the_current_run(world: Any) -> None:
    """Each change reaches the run at once, and shows in the settings bar and in the plot."""
    async with world.cockpit() as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.press("plus", "right_square_bracket", "d")
        world.script.run_for(12, 7.1e9)
        await cockpit.settle()
        assert world.script.changes == [
            Settings(sessions=2),
            Settings(sessions=2, window_bytes=512 * 1024),
            Settings(Direction.IN, 2, 512 * 1024),
        ]
        assert "[2]" in cockpit.line(2)
        assert [mark.label for mark in cockpit.app.cockpit.readings.change_marks] == [
            "2\u00a0sessions",
            "window\u00a0512K",
            "in",
        ]


async def test_the_workload_is_that_of_the_next_run(world: Any) -> None:
    """The current run keeps its own. The settings bar names every workload other than stream."""
    async with world.cockpit() as cockpit:
        seen: list[str] = []
        for _ in range(5):
            await cockpit.press("w")
            seen.append(str(cockpit.app.cockpit.plan.workload))
        assert seen == ["rr", "crr", "fetch", "udp", "stream"]
        await cockpit.press("w")
        await cockpit.press("space")
        await cockpit.press("w")
        assert world.script.plan.workload == "rr"
        assert cockpit.app.cockpit.plan.workload == "crr"


async def test_the_keys_of_datagrams_change_their_rate_and_size_while_they_are_sent(world: Any) -> None:
    """With another workload they say what they are for. A window is for TCP."""
    async with world.cockpit(preset="loopback", plan=Plan(workload=Workload.UDP)) as cockpit:
        assert "[10 Mb/s]" in cockpit.line(2)
        assert "[auto]" in cockpit.line(2)
        await cockpit.press("space", "k", "b")
        assert world.script.changes[-1] == Settings(rate_bit_s=20_000_000, datagram_bytes=64)
        assert "[20 Mb/s]" in cockpit.line(2)
        assert "[64]" in cockpit.line(2)
        await cockpit.press("]", "j", "j")
        assert world.script.changes[-1] == Settings(rate_bit_s=5_000_000, datagram_bytes=64)
        await cockpit.press("space", "w", "k")
        assert cockpit.app.cockpit.plan.settings == Settings()
        assert any("for the workload udp" in text for text in notifications(cockpit))


async def test_keys_that_an_iperf3_server_does_not_allow_change_nothing_and_say_why(world: Any) -> None:
    """Its test keeps its first settings. They can be changed before and after it."""
    async with world.cockpit(peer=IPERF3) as cockpit:
        await cockpit.press("plus", "space")
        world.script.run_for(8, 7.1e9)
        await cockpit.press("plus", "minus", "right_square_bracket", "left_square_bracket", "d")
        await cockpit.settle()
        assert world.script.changes == []
        assert cockpit.app.cockpit.plan.settings == Settings(sessions=2)
        assert set(notifications(cockpit)) == {LIVE}
        world.script.run_for(4, 7.1e9)
        world.script.report_totals(7e9)
        world.script.end()
        await cockpit.settle()
        await cockpit.press("plus", "d")
        assert cockpit.app.cockpit.plan.settings == Settings(Direction.IN, 3)


async def test_workloads_and_the_probe_that_iperf3_does_not_have_are_left_out_with_the_reason(world: Any) -> None:
    """Only streams and datagrams are left."""
    async with world.cockpit(peer=IPERF3) as cockpit:
        seen: list[Workload] = []
        for _ in range(3):
            await cockpit.press("w")
            seen.append(cockpit.app.cockpit.plan.workload)
        assert seen == [Workload.UDP, Workload.STREAM, Workload.UDP]
        assert why_unavailable(IPERF3, Feature.TRANSACTIONS) in notifications(cockpit)
        await cockpit.press("w", "l")
        assert not cockpit.app.cockpit.plan.probe
        assert why_unavailable(IPERF3, Feature.PROBE) in notifications(cockpit)
