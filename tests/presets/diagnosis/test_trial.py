"""Trials: a remedy's options as the command line has them, and as the plan has them."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.plan import SECOND_NS, Mode, Plan, Settings, SocketOptions
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.diagnosis.finding import Finding, finding_figures, read_findings
from linkgauge.presets.diagnosis.trial import Trial
from linkgauge.tui.cli.click_extension.command_groups import make_command
from linkgauge.tui.cli.plan_options import PlanOptions

PLAN = Plan(
    Settings(sessions=2, window_bytes=57_344), duration_ns=5 * SECOND_NS, socket=SocketOptions(congestion="bbr")
)
REQUESTS = Plan(workload=Workload.RR, duration_ns=5 * SECOND_NS)
DATAGRAMS = Plan(Settings(rate_bit_s=10_000_000), Workload.UDP, duration_ns=5 * SECOND_NS)
BOTH = replace(PLAN, settings=replace(PLAN.settings, direction=Direction.DUPLEX))
CASES = {
    "--direction in": (Trial(direction=Direction.IN), BOTH),
    "--sessions 4 --workers 4": (Trial(sessions=4, workers=4), PLAN),
    "--cores 0,2": (Trial(near_cores=(0, 2)), PLAN),
    "--far-cores 1": (Trial(far_cores=(1,)), PLAN),
    "--window 512K": (Trial(window_bytes=524_288), PLAN),
    "--window 4M": (Trial(window_bytes=4 << 20), PLAN),
    "--window 3000": (Trial(window_bytes=3_000), PLAN),
    "--window auto": (Trial(window_auto=True), PLAN),
    "--rate 95M": (Trial(rate_bit_s=95_000_000), PLAN),
    "--rate 7600K": (Trial(rate_bit_s=7_600_000), PLAN),
    "--rate 1.234K": (Trial(rate_bit_s=1_234), PLAN),
    "--rate 2G": (Trial(rate_bit_s=2 * 10**9), DATAGRAMS),
    "--datagram 1200": (Trial(datagram_bytes=1_200), DATAGRAMS),
    "--congestion cubic": (Trial(congestion="cubic"), PLAN),
    "--mode sendfile": (Trial(mode=Mode.SENDFILE), PLAN),
    "--burst 10": (Trial(burst=10), REQUESTS),
    "--response 64K": (Trial(response_bytes=65_536), REQUESTS),
    "--seconds 60 --warmup 10": (Trial(duration_ns=60 * SECOND_NS, warmup_ns=10 * SECOND_NS), PLAN),
}


def typed(plan: Plan, text: str) -> Plan:
    """Return the plan of a command line: a plan's options, and after them those of a text, which count."""
    settings = plan.settings
    options = {
        "--seconds": "5",
        "--sessions": str(settings.sessions),
        "--window": str(settings.window_bytes or "auto"),
        "--congestion": plan.socket.congestion,
        "--rate": None if settings.rate_bit_s is None else f"{settings.rate_bit_s // 1_000}K",
        "--workload": str(plan.workload),
    }
    words = [word for name, value in options.items() if value is not None for word in (name, value)]

    def read(options: PlanOptions) -> Any:
        return options.to_plan()

    return make_command("plan", read).main([*words, *text.split()], standalone_mode=False)


@pytest.mark.parametrize("text", CASES)
def test_the_users_command_is_the_same_as_the_trial(text: str) -> None:
    """The command line makes the same plan as the trial."""
    trial, plan = CASES[text]
    assert str(trial) == text
    changed = trial.apply_to(plan)
    assert changed != plan
    assert changed == typed(plan, text)


def test_a_rate_is_lifted_in_words_and_in_the_plan() -> None:
    """Of TCP the limit is the plan's, of datagrams it is one of the settings."""
    trial = Trial(without_rate=True)
    assert str(trial) == "without --rate"
    assert trial.apply_to(replace(PLAN, rate_bit_s=10_000_000)) == PLAN
    assert trial.apply_to(DATAGRAMS).settings.rate_bit_s is None


def test_a_longer_warm_up_replaces_one_that_waits_for_a_steady_rate() -> None:
    """A plan has either."""
    trial = Trial(warmup_ns=SECOND_NS)
    changed = trial.apply_to(replace(PLAN, warmup_auto=True))
    assert (changed.warmup_ns, changed.warmup_auto) == (SECOND_NS, False)


def test_nothing_changes_a_plan_into_an_impossible_one() -> None:
    """The plan's own checks apply."""
    with pytest.raises(PlanError):
        Trial(burst=2).apply_to(PLAN)


def test_a_finding_has_its_trial_and_the_run_log_does_without() -> None:
    """Earlier versions refuse a key that they do not know, and an earlier finding has none."""
    finding = Finding("loss", 0.5, 0.9, "Packets are lost.", "2 %", "…", trial=Trial(congestion="bbr"))
    assert decode(Finding, encode(finding)) == finding
    assert read_findings(finding_figures((finding,))) == (replace(finding, trial=None),)
