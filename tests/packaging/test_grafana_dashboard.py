"""The dashboard for Grafana: its shape, its metrics, its queries."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from linkgauge.metrics.families import FAMILIES

from ..metrics.prometheus_programs import run_prometheus

DASHBOARD: Final = Path(__file__).parents[2] / "packaging" / "grafana" / "linkgauge.json"
COLUMNS: Final = 24
VARIABLES: Final = {"$instance": ".*", "$__range": "1d", "$__rate_interval": "5m", "$watch": ".*", "$peer": ".*"}


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    """Return the dashboard."""
    return dict(json.loads(DASHBOARD.read_text(encoding="utf-8")))


def expressions(dashboard: dict[str, Any]) -> list[str]:
    """Return every query, annotations included, with values for the variables."""
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    found += [each["expr"] for each in dashboard["annotations"]["list"]]
    for name, value in VARIABLES.items():
        found = [each.replace(name, value) for each in found]
    return found


def test_every_metric_of_the_dashboard_exists(dashboard: dict[str, Any]) -> None:
    """In queries and in the lists of peers."""
    asked = [*expressions(dashboard), *(str(each["query"]) for each in dashboard["templating"]["list"])]
    named = {name for each in asked for name in re.findall(r"linkgauge_\w+", each)}
    assert len(named) > 10
    assert named <= {each.name for each in FAMILIES}


def test_every_query_is_promql(dashboard: dict[str, Any], tmp_path: Path) -> None:
    """A real Prometheus takes each; a wrong one is an error of HTTP."""
    with run_prometheus(tmp_path, {}) as prometheus:
        for each in expressions(dashboard):
            assert "$" not in each
            assert prometheus.query(each)["resultType"] == "vector"


def test_panels_have_places_and_sources_of_their_own(dashboard: dict[str, Any]) -> None:
    """No two overlap, none is wider than the page, and each asks the source that the reader chose."""
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in own) < COLUMNS
        assert not cells & own, panel["title"]
        cells |= own
        for target in panel.get("targets", []):
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        refs = [target["refId"] for target in panel.get("targets", [])]
        assert len(set(refs)) == len(refs)
    assert [each["name"] for each in dashboard["templating"]["list"]] == ["datasource", "instance", "watch", "peer"]
