"""The rules for alerts: promtool tries each on good, bad and absent series."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from linkgauge.metrics.families import FAMILIES

from ..metrics.prometheus_programs import find_program

PACKAGING: Final = Path(__file__).parents[2] / "packaging"
RULES: Final = PACKAGING / "prometheus" / "linkgauge.rules.yml"
HOSTS: Final = ("a:9820", "b:9820")
PEER: Final = {"watch": "office", "peer": "db-02"}
# For each alert: the series of a host that raises it at 2 h, and those of a healthy host.
CASES: Final[dict[str, tuple[dict[str, str], dict[str, str]]]] = {
    "LinkgaugeDown": ({'up{job="linkgauge"': "0x120"}, {'up{job="linkgauge"': "1x120"}),
    "LinkgaugePeerFailed": (
        {'linkgauge_check_verdict{verdict="failed"': "1x120"},
        {'linkgauge_check_verdict{verdict="failed"': "0x120"},
    ),
    "LinkgaugePeerBelowMark": (
        {'linkgauge_check_verdict{verdict="below"': "1x120"},
        {'linkgauge_check_verdict{verdict="below"': "0x120"},
    ),
    "LinkgaugeProbesUnanswered": ({"linkgauge_probe_success{": "0x120"}, {"linkgauge_probe_success{": "1x120"}),
    "LinkgaugeLevelWorse": (
        {'linkgauge_level_shifts_total{metric="goodput",direction="worse"': "0x100 1x20"},
        {'linkgauge_level_shifts_total{metric="goodput",direction="better"': "0x100 1x20"},
    ),
    "LinkgaugeTestsOverdue": (
        {"linkgauge_next_check_timestamp_seconds{": "60x120"},
        {"linkgauge_next_check_timestamp_seconds{": "7200x120"},
    ),
    "LinkgaugeDataBudgetNearlyUsed": (
        {"linkgauge_month_data_bytes{": "81x120", "linkgauge_month_budget_bytes{": "100x120"},
        {"linkgauge_month_data_bytes{": "79x120", "linkgauge_month_budget_bytes{": "100x120"},
    ),
    "LinkgaugeEndpointFull": (
        {"linkgauge_endpoint_clients{": "64x120", "linkgauge_endpoint_clients_limit{": "64x120"},
        {"linkgauge_endpoint_clients{": "63x120", "linkgauge_endpoint_clients_limit{": "64x120"},
    ),
    "LinkgaugeEndpointRejects": (
        {'linkgauge_endpoint_rejections_total{reason="key"': "0+120x120"},
        {'linkgauge_endpoint_rejections_total{reason="key"': "0+30x120"},
    ),
}


def rules() -> list[dict[str, Any]]:
    """Return every rule of the file."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def verdict_expression() -> str:
    """Return the query of the dashboard's verdicts, for all instances, watches and peers."""
    dashboard = json.loads((PACKAGING / "grafana" / "linkgauge.json").read_text())
    panel = next(each for each in dashboard["panels"] if each["title"] == "Verdict")
    expression = str(panel["targets"][0]["expr"])
    for name in ("$instance", "$watch", "$peer"):
        expression = expression.replace(name, ".*")
    return expression


def series(head: str, values: str, instance: str) -> dict[str, str]:
    """Return a series of promtool; an endpoint's has neither watch nor peer."""
    labels = {"instance": instance}
    if not head.startswith(("up{", "linkgauge_endpoint")):
        labels |= PEER
    text = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return {"series": f"{head}{'' if head.endswith('{') else ','}{text}}}", "values": values}


def run_promtool(folder: Path, tests: list[dict[str, Any]]) -> None:
    """Have promtool carry out tests of the rules; fail with its words."""
    file = folder / "tests.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(
        [find_program("promtool"), "test", "rules", file], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_rule_is_valid_and_asks_for_metrics_that_exist() -> None:
    """With a severity, and two sentences for its reader."""
    done = subprocess.run(
        [find_program("promtool"), "check", "rules", RULES], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = {each.name for each in FAMILIES}
    for rule in rules():
        asked = {word for word in rule["expr"].replace("(", " ").replace("{", " ").split() if "linkgauge_" in word}
        assert {word.rstrip(")").split("[")[0] for word in asked} <= names, rule["alert"]
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_is_raised_for_the_bad_host_alone(alert: str, tmp_path: Path) -> None:
    """Another host has good values of the same peer."""
    bad, good = CASES[alert]
    inputs = [
        series(*each, host) for host, values in zip(HOSTS, (bad, good), strict=True) for each in values.items()
    ]
    rule = next(each for each in rules() if each["alert"] == alert)
    expected = f"ALERTS{{alertname='{alert}',alertstate='firing'}}"
    run_promtool(
        tmp_path,
        [
            {
                "interval": "1m",
                "input_series": inputs,
                "promql_expr_test": [
                    {
                        "expr": f"count by (instance, severity) ({expected})",
                        "eval_time": "2h",
                        "exp_samples": [
                            {
                                "labels": f"{{instance='{HOSTS[0]}',severity='{rule['labels']['severity']}'}}",
                                "value": 1,
                            }
                        ],
                    }
                ],
            }
        ],
    )


def test_without_any_series_only_their_absence_is_an_alert(tmp_path: Path) -> None:
    """Nothing else is raised by what is not there."""
    firing = [{"labels": "{alertname='LinkgaugeAbsent'}", "value": 1}]
    query = {"expr": "count by (alertname) (ALERTS{alertstate='firing'})", "eval_time": "1h"}
    present = [{"series": "linkgauge_build_info{version='1'}", "values": "1x60"}]
    run_promtool(
        tmp_path,
        [
            {"interval": "1m", "input_series": [], "promql_expr_test": [{**query, "exp_samples": firing}]},
            {"interval": "1m", "input_series": present, "promql_expr_test": [{**query, "exp_samples": []}]},
        ],
    )


def test_the_dashboard_tells_below_from_failed_on_each_instance(tmp_path: Path) -> None:
    """Two instances that watch one peer do not add up."""
    states = {"a:9820": ("below", 1), "b:9820": ("below", 1), "c:9820": ("failed", 2), "d:9820": ("good", 0)}
    inputs = [
        series(f'linkgauge_check_verdict{{verdict="{verdict}"', "1x5" if verdict == state else "0x5", host)
        for host, (state, _) in states.items()
        for verdict in ("good", "below", "failed")
    ]
    samples = [
        {"labels": f"{{instance='{host}',peer='db-02',watch='office'}}", "value": value}
        for host, (_, value) in states.items()
    ]
    query = {"expr": verdict_expression(), "eval_time": "5m", "exp_samples": samples}
    run_promtool(tmp_path, [{"interval": "1m", "input_series": inputs, "promql_expr_test": [query]}])
