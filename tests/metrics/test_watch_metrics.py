"""The metrics of a watch: the known values of its peers, and nothing else."""

from collections.abc import Mapping
from dataclasses import replace

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.responsiveness.plan import with_path
from linkgauge.metrics.families import Reading
from linkgauge.metrics.watch_metrics import read_watch
from linkgauge.watch.events import CheckResult, CheckVerdict, PathChanged, Route
from linkgauge.watch.watch_plan import WatchPlan
from linkgauge.watch.watch_state import PeerStatus

from .watched_peers import NOW_S, PLAN, STATUSES, USE, ended, peer


def values_of(
    plan: WatchPlan = PLAN, statuses: Mapping[str, PeerStatus] = STATUSES, now_s: float = NOW_S
) -> dict[tuple[str, ...], float]:
    """Return each reading's value by its name, without the prefix, and its labels, without the watch."""
    return short(list(read_watch(plan, statuses, USE, now_s)))


def short(readings: list[Reading]) -> dict[tuple[str, ...], float]:
    """Return values by short names."""
    return {
        (each.family.name.removeprefix("linkgauge_"), *each.labels[1:]): each.value
        for each in readings
        if each.family.name != "linkgauge_build_info"
    }


def test_every_reading_is_in_base_units() -> None:
    """Bytes a second, seconds, ratios: 56.3 Mb/s are 7 037 500 bytes a second."""
    values = values_of()
    fra = {key[:1] + key[2:]: value for key, value in values.items() if key[1:2] == ("fra",)}
    assert {key: value for key, value in fra.items() if key[0] != "level_shifts_total"} == {
        ("check_pass_mark_ratio",): 0.95,
        ("month_budget_bytes",): 10**10,
        ("check_running",): 1,
        ("check_skipped", "budget"): 1,
        ("check_verdict", "good"): 0,
        ("check_verdict", "below"): 1,
        ("check_verdict", "failed"): 0,
        ("check_goodput_bytes_per_second",): 7_037_500,
        ("check_expected_ratio",): 0.598,
        ("check_loss_ratio",): 0,
        ("check_retransmits_per_byte",): 2e-6,
        ("check_finding", "path_slower"): 1,
        ("probe_success",): 1,
        ("probe_latency_seconds",): 0.0123,
        ("checks_total", "good"): 40,
        ("checks_total", "below"): 2,
        ("checks_total", "failed"): 1,
        ("checks_missed_total",): 0,
        ("retests_total",): 2,
        ("flaps_total",): 1,
        ("data_bytes_total",): 3_000_000_000,
        ("month_data_bytes",): 3_000_000_000,
        ("last_check_timestamp_seconds",): NOW_S - 120,
        ("next_check_timestamp_seconds",): NOW_S + 600,
        ("last_probe_timestamp_seconds",): NOW_S - 5,
        ("next_probe_timestamp_seconds",): NOW_S + 55,
    }
    assert values["watch_month_budget_bytes",] == 10**11
    assert values["level_shifts_total", "fra", "goodput", "worse"] == 120
    assert values["level_shifts_total", "fra", "latency", "better"] == 0


def test_an_unknown_value_has_no_reading() -> None:
    """A new peer has counts of 0 and no figures; a failed test has a verdict and no rate."""
    known = {key[0] for key in values_of() if key[1:2] == ("lon",)}
    assert known == {
        *("check_pass_mark_ratio", "check_running"),
        *("checks_total", "checks_missed_total", "retests_total", "flaps_total"),
        *("level_shifts_total", "data_bytes_total", "month_data_bytes"),
    }
    failed = PeerStatus("lon", last_check=ended(CheckResult(CheckVerdict.FAILED, detail="no route")))
    values = values_of(WatchPlan("office", (peer("lon"),)), {"lon": failed})
    assert values["check_verdict", "lon", "failed"] == 1
    assert not {"check_goodput_bytes_per_second", "check_expected_ratio"} & {key[0] for key in values}


def test_a_months_data_ends_with_the_month() -> None:
    """The counter goes on until something is sent in the new month."""
    values = values_of(now_s=NOW_S + 14 * 86_400)
    assert values["month_data_bytes", "fra"] == 0
    assert values["data_bytes_total", "fra"] == 3_000_000_000


def test_a_traced_path_has_its_hops_and_its_changes() -> None:
    """By direction; a peer whose path is not traced has none."""
    assert not [key for key in values_of() if key[0].startswith("path_")]
    traced = replace(peer("fra"), plan=with_path(Plan(duration_ns=SECOND_NS)))
    plan = replace(PLAN, peers=(traced,))
    route = Route(Direction.OUT, (("192.0.2.1",), ("192.0.2.9",)))
    change = PathChanged(NOW_S, "fra", route, route)
    check = STATUSES["fra"].last_check
    assert check is not None
    check = replace(check, result=replace(check.result, routes=(route,)))
    status = replace(STATUSES["fra"], last_check=check, path_changes={Direction.OUT: (change, 3)})
    values = values_of(plan, {"fra": status})
    assert {key: value for key, value in values.items() if key[0].startswith("path_")} == {
        ("path_changes_total", "fra", "out"): 3,
        ("path_changes_total", "fra", "in"): 0,
        ("path_hops", "fra", "out"): 2,
    }
