"""The lines and the document of a check of hosts."""

from linkgauge import __version__
from linkgauge.mesh.check.mesh_check import HostCheck, MeshCheck, PathCheck
from linkgauge.mesh.events import CellFailure, FailureCode
from linkgauge.mesh.plan import Cell, Host
from linkgauge.tui.mesh.check_words import check_json, check_lines

from ...json_schemas import check

NAMES = ("db-1", "db-2", "db-3")
USABLE = tuple(HostCheck(Host(name, None, f"10.0.0.{n}"), "3.12.1", 5_000 + n) for n, name in enumerate(NAMES, 1))
DROPPED = CellFailure(FailureCode.UNREACHABLE, "no answer; see the firewall")


def paths(*failed: Cell) -> tuple[PathCheck, ...]:
    """Return all paths between the hosts, some of which fail."""
    cells = [Cell(sender, receiver) for sender in NAMES for receiver in NAMES if sender != receiver]
    return tuple(PathCheck(cell, 5_000, DROPPED if cell in failed else None) for cell in cells)


def lines(*failed: Cell, hosts: tuple[HostCheck, ...] = USABLE) -> list[str]:
    """Return the lines, with plain spaces."""
    return [line.replace("\u00a0", " ") for line in check_lines(MeshCheck(hosts, paths(*failed)))]


def test_usable_hosts_have_a_line_each_and_a_conclusion() -> None:
    """With what is known of them."""
    first, *_, last = lines()
    assert first == f"db-1: usable: 10.0.0.1, linkgauge {__version__}, Python 3.12.1, endpoint on port 5001"
    assert last == "usable: 3 hosts, each reaches all others (6 paths)"


def test_paths_to_one_host_that_all_fail_alike_are_one_line() -> None:
    """Of many hosts, one firewall would be hundreds of lines."""
    assert lines(Cell("db-1", "db-3"), Cell("db-2", "db-3"), Cell("db-3", "db-1"))[3:] == [
        "all others to db-3: no answer; see the firewall",
        "db-3 to db-1: no answer; see the firewall",
        "not usable: 3 of 6 paths",
    ]


def test_the_document_has_every_host_and_path() -> None:
    """As its schema says."""
    failed = HostCheck(Host("db-3"), failure=CellFailure(FailureCode.UNREACHABLE, "no login", "db-3"))
    document = check_json(MeshCheck((*USABLE[:2], failed), paths(Cell("db-1", "db-2"))), "mesh-1")
    check("stream.schema.json", {"type": "mesh_check", "summary": document})
    assert not document["is_usable"]
    assert document["hosts"][2]["failure"] == {"code": "unreachable", "detail": "no login", "host": "db-3"}
