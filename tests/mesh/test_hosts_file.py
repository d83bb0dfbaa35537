"""Hosts in a file: names, groups, comments, and wrong lines."""

import pytest
from linkgauge.engine.model.errors import PlanError, UsageError
from linkgauge.mesh.hosts_file import add_groups, parse_hosts_file
from linkgauge.mesh.plan import Host

FILE = """\
# the databases
db-01 rack-1
db-02\track-1   # the slow one

db-03
"""


def test_a_file_has_one_host_a_line_with_an_optional_group() -> None:
    """Comments and empty lines are left out."""
    assert parse_hosts_file(FILE, "hosts") == (Host("db-01", "rack-1"), Host("db-02", "rack-1"), Host("db-03"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a x y\nb", "hosts.txt, line 1: 'a x y' is invalid; give NAME, or NAME GROUP"),
        ("a\nb\na rack", "hosts.txt, line 3: 'a' is invalid; give each host once"),
        ("a\n" + "b" * 65, "hosts.txt, line 2: host"),
        ("a\nb \x1b[31m", "hosts.txt, line 2: group"),
        ("# nobody\na", "hosts.txt has 1 host, and a mesh needs 2; give one a line: NAME, or NAME GROUP"),
        ("", "hosts.txt has no hosts, and a mesh needs 2"),
        ("\n".join(f"host-{i}" for i in range(4_097)), "line 4097: a mesh has at most 4096 hosts"),
    ],
)
def test_a_wrong_line_is_named_with_the_file_and_its_number(text: str, words: str) -> None:
    """With the possible values."""
    with pytest.raises((PlanError, UsageError)) as error:
        parse_hosts_file(text, "hosts.txt")
    assert words in str(error.value)


def test_groups_come_from_the_file_by_name() -> None:
    """A host that is not in the file has no group."""
    found = (Host("db-01", address="10.0.0.1"), Host("db-09", address="10.0.0.9"))
    assert add_groups(found, parse_hosts_file(FILE, "hosts")) == (
        Host("db-01", "rack-1", "10.0.0.1"),
        Host("db-09", None, "10.0.0.9"),
    )
