"""The plot of a run: one key goes through its contents, and each has its own axis."""

from typing import Any

from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.tui.gauges.plots.run_plot import RunPlot


def title_and_axis(cockpit: Any) -> tuple[str, str]:
    """Return the title of the plot and the cells left of it, with plain spaces."""
    plot = cockpit.app.cockpit.query_one(RunPlot)
    axis = "".join(line.plain[:8] for line in plot._lines[:-1])
    return str(plot.border_title).replace("\u00a0", " "), axis.replace("\u00a0", " ")


async def test_a_key_goes_through_all_plots(world: Any) -> None:
    """Each has a title with its unit and an axis of its own; after the last comes the first again."""
    async with world.cockpit((120, 40), plan=Plan(duration_ns=30 * SECOND_NS)) as cockpit:
        await cockpit.press("space")
        world.script.run_for(40, 4e9)
        await cockpit.settle()
        seen = [title_and_axis(cockpit)]
        for _ in range(5):
            await cockpit.press("v")
            seen.append(title_and_axis(cockpit))
        assert seen[0] == seen[5]
        assert seen[4][0].startswith("bytes in flight and windows")
        assert [title.split(",")[0] for title, _ in seen[:4]] == [
            "throughput",
            "RTT",
            "retransmits per second",
            "congestion window",
        ]
        assert len({axis for _, axis in seen[:4]}) == 4


async def test_the_chosen_plot_follows_the_run_and_its_changes(world: Any) -> None:
    """A change has its line, and both periods their means."""
    async with world.cockpit((120, 40), plan=Plan(duration_ns=30 * SECOND_NS)) as cockpit:
        await cockpit.press("space", "v", "v", "v")
        world.script.run_for(40, 4e9)
        world.script.change_settings(world.script.settings.with_changes(sessions=5))
        world.script.run_for(40, 8e9)
        await cockpit.settle()
        labels = cockpit.app.cockpit.query_one(RunPlot)._lines[0].plain.replace("\u00a0", " ")
        assert "1 session 595" in labels  # KiB of one session, then of five
        assert "5 sessions 2 991" in labels


async def test_a_plot_without_values_says_so(world: Any) -> None:
    """Before the first sample; an empty plot could be taken for zeros."""
    async with world.cockpit((80, 24)) as cockpit:
        await cockpit.press("space", "v")
        assert "no values from the kernel yet" in cockpit.text()


async def test_the_plots_of_datagrams_are_loss_jitter_delay_and_rtt(world: Any) -> None:
    """TCP's own values have no plot there; the strip of losses stays below each."""
    plan = Plan(workload=Workload.UDP, duration_ns=30 * SECOND_NS)
    async with world.cockpit((120, 40), plan=plan) as cockpit:
        await cockpit.press("space")
        world.script.lost_share = 0.02
        world.script.run_for(40, 9e8)
        await cockpit.settle()
        titles: list[str] = []
        for _ in range(6):
            titles.append(title_and_axis(cockpit)[0].split(",")[0])
            assert "loss ▄▄▄" in cockpit.text()
            await cockpit.press("v")
        assert titles == ["throughput", "lost datagrams", "jitter", "delay variation", "RTT", "throughput"]
