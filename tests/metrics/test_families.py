"""The metrics' names, by Prometheus' conventions."""

import re
from pathlib import Path

from linkgauge.metrics import families
from linkgauge.metrics.families import FAMILIES, Reading, group_by_family


def test_names_follow_the_conventions() -> None:
    """One prefix, base units, `_total` for counters alone; the help is a sentence."""
    assert len({each.name for each in FAMILIES}) == len(FAMILIES)
    for each in FAMILIES:
        assert re.fullmatch("linkgauge_[a-z_]+", each.name)
        assert each.name.endswith("_total") == (each.kind == "counter"), each.name
        assert not re.search("milli|mega|giga|bits|percent|minutes|hours", each.name)
        assert each.help.endswith("."), each.name


def test_the_readings_of_a_metric_stand_together() -> None:
    """Prometheus refuses a metric that begins twice."""
    mixed = [Reading(families.RUNS, 1), Reading(families.CLIENTS, 2), Reading(families.RUNS, 3)]
    grouped = [(family.name, [each.value for each in readings]) for family, readings in group_by_family(mixed)]
    assert grouped == [("linkgauge_endpoint_runs", [1, 3]), ("linkgauge_endpoint_clients", [2])]


def test_the_documents_list_every_metric_with_its_labels_and_its_meaning() -> None:
    """And none that does not exist."""
    text = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    rows = {line for line in text.splitlines() if line.startswith("| `linkgauge_")}
    assert rows == {
        f"| `{each.name}` | {', '.join(f'`{label}`' for label in each.labels)} | {each.help} |" for each in FAMILIES
    }
