"""Targets of the command line."""

import pytest
from linkgauge.engine.model.errors import PlanError
from linkgauge.observe.request import Target, parse_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("192.0.2.1", Target("host", "192.0.2.1", "192.0.2.1")),
        ("db.example:5432", Target("host", "db.example:5432", "db.example", 5_432)),
        ("[::1]:5", Target("host", "[::1]:5", "::1", 5)),
        ("2001:db8::1", Target("host", "2001:db8::1", "2001:db8::1")),
        (":443", Target("port", ":443", port=443)),
        ("1234", Target("pid", "1234", pid=1_234)),
        ("rsync", Target("name", "rsync", "rsync")),
    ],
)
def test_a_target_is_a_host_a_port_a_process_or_a_name(text: str, target: Target) -> None:
    """A name without dots may be either; the program comes first."""
    assert parse_target(text) == target


@pytest.mark.parametrize("text", ["", "x:", ":0", ":99999", " a", "a\n", "x" * 300, ":\u0663", "[::1]:x"])
def test_a_bad_target_is_refused_in_a_line(text: str) -> None:
    """It says what would be right."""
    with pytest.raises(PlanError, match=r"^target .*give|1 to"):
        parse_target(text)
