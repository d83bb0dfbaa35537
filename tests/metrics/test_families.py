"""The metrics' names, by Prometheus' conventions."""

import re
from pathlib import Path

from linkgauge.metrics.families import FAMILIES


def test_names_follow_the_conventions() -> None:
    """One prefix, base units, `_total` only for counters; the help is a sentence."""
    assert len({each.name for each in FAMILIES}) == len(FAMILIES)
    for each in FAMILIES:
        assert re.fullmatch("linkgauge_[a-z_]+", each.name)
        assert each.name.endswith("_total") == (each.kind == "counter"), each.name
        assert not re.search("milli|mega|giga|bits|percent|minutes|hours", each.name)
        assert each.help.endswith("."), each.name


def test_the_documents_list_every_metric_with_its_labels_and_its_meaning() -> None:
    """And no others."""
    text = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    rows = {line for line in text.splitlines() if line.startswith("| `linkgauge_")}
    assert rows == {
        f"| `{each.name}` | {', '.join(f'`{label}`' for label in each.labels)} | {each.help} |" for each in FAMILIES
    }
