"""`linkgauge observe`, carried out on real connections of this host."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ....command_line import CommandResult, carry_out
from ....engine.tcp_pair import only_linux
from ....observe.small_transfer import carry_payload

pytestmark = only_linux


@pytest.fixture
def port() -> Iterator[int]:
    """Yield the port of the receiver of a small transfer."""
    with carry_payload() as receiver_port:
        yield receiver_port


def observe(tmp_path: Path, *arguments: str) -> CommandResult:
    """Carry the command out."""
    folders = {"LINKGAUGE_DATA_DIR": str(tmp_path), "LINKGAUGE_CONFIG_DIR": str(tmp_path)}
    return carry_out(["observe", *arguments], folders)


def test_one_look_prints_the_connections_and_passes(port: int, tmp_path: Path) -> None:
    """A table: the sender lacks data, which is no limit."""
    result = observe(tmp_path, f":{port}", "--once")
    assert (result.status, result.err) == (0, "")
    assert "2\u00a0connections, 2 moving payload" in result.out
    assert "The sending program sets the rate" in result.out
    assert f"127.0.0.1:{port}" in result.out


def test_programs_get_documents_and_rows(port: int, tmp_path: Path) -> None:
    """JSON lines and CSV from the same observations."""
    path = tmp_path / "rows.csv"
    result = observe(
        tmp_path, f":{port}", "--json-stream", "--seconds", "1", "--interval", "500ms", "--csv", str(path)
    )
    documents = [json.loads(line) for line in result.out.splitlines()]
    assert result.status == 0
    assert len(documents) == 2
    rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == sum(len(document["connections"]) for document in documents)
    assert {row["direction"] for row in rows} == {"out", "in"}


def test_a_lowest_rate_decides_the_exit_status(port: int, tmp_path: Path) -> None:
    """Of all matching connections together."""
    assert observe(tmp_path, f":{port}", "--once", "--json", "--min-rate", "1M").status == 0
    assert observe(tmp_path, f":{port}", "--once", "--json", "--min-rate", "100G").status == 1


def test_connections_go_to_the_run_log_if_they_are_to_be_saved(port: int, tmp_path: Path) -> None:
    """Each with its result, and marked: lists filter by that. A look without the option saves nothing."""
    assert observe(tmp_path, f":{port}", "--once").status == 0
    assert not list(tmp_path.iterdir())
    result = observe(tmp_path, f":{port}", "--once", "--save", "--label", "hunt", "--json")
    assert result.status == 0
    assert result.err.count("saved ") == 2
    runs = {"LINKGAUGE_DATA_DIR": str(tmp_path), "LINKGAUGE_CONFIG_DIR": str(tmp_path)}
    listed = json.loads(carry_out(["runs", "list", "--kind", "observed", "--json"], runs).out)
    documents = [each["document"] for each in listed]
    assert {each["plan"]["direction"] for each in documents} == {"out", "in"}
    assert {each["label"] for each in documents} == {"hunt"}
    assert {each["observed"]["status"] for each in documents} <= {"app-limited", "unknown", "limited"}
    shown = carry_out(["runs", "show", listed[0]["run_id"]], runs)
    assert (shown.status, shown.err) == (0, "")
    assert "• OBSERVED" in shown.out
    assert "--" not in shown.out.replace("--line-rate", "")  # no option of a test is a remedy
    assert json.loads(carry_out(["runs", "list", "--kind", "test", "--json"], runs).out) == []


def test_addresses_have_stand_ins_if_they_are_wanted(tmp_path: Path) -> None:
    """Loopback stays; there is nothing else to hide here."""
    result = observe(tmp_path, "192.0.2.77", "--once", "--redact", "--min-rate", "1M")
    assert result.status == 1
    assert "no connection matches host-" in result.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--json"], "--once or --seconds"),
        (["--once", "--seconds", "3"], "leave out --once or --seconds"),
        (["--once", "--json", "--json-stream"], "two outputs"),
        (["--once", "--top", "0"], "give 1 to"),
        (["--once", "--label", "hunt"], "add --save"),
        (["--once", "--save", "--label", "x" * 500], "label"),
        (["--interval", "1ms", "--seconds", "1"], "give 250ms to 60s"),
        (["--interval", "1", "--once"], "leave out --once or --interval"),
        ([":0", "--once"], "a port is 1 to"),
        (["--once", "--netns", "../x"], "ip netns list"),
        (["--once", "--pid", "4194303"], "does not exist"),
        (["4194303", "--once"], "there is no process"),
        (["--once", "--csv", "/no/such/folder/x.csv"], "directory does not exist"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(arguments: list[str], problem: str, tmp_path: Path) -> None:
    """What, where, and what to do."""
    result = observe(tmp_path, *arguments)
    assert result.status in {2, 3}
    assert problem in result.err
    assert "Traceback" not in result.err
    assert result.out == ""


def test_metrics_are_served_while_it_runs(port: int, tmp_path: Path) -> None:
    """By a server that the first line of the error stream names."""
    result = observe(tmp_path, f":{port}", "--seconds", "1", "--interval", "500ms", "--metrics", "0")
    assert result.status == 0
    assert result.err.startswith("linkgauge: metrics: http://127.0.0.1:")
