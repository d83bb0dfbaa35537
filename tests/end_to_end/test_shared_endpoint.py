"""Several tests on one endpoint: each learns of the others, and one may have the endpoint for itself."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import assert_not_run
from .iperf3_programs import PROGRAM, version

DEADLINE_S = 40.0
LONG = ("--seconds", "60", "--sessions", "2", "--rate", "40M", "--json-stream")
SHORT = ("--seconds", "2", "--rate", "40M")
StartEndpoint = Callable[..., tuple[Any, str]]


def start_beside(linkgauge: Any, address: str) -> Any:
    """Start a long test, and wait until it carries payload."""
    beside = linkgauge.start("run", address, *LONG)
    for line in beside.stdout:
        if json.loads(line)["type"] == "interval":
            return beside
    raise AssertionError(beside.communicate()[1])


def stop_beside(linkgauge: Any, beside: Any) -> list[dict[str, Any]]:
    """Stop it; return its further lines."""
    beside.terminate()
    return [json.loads(line) for line in linkgauge.finish(beside).out.splitlines()]


def start_for_both(linkgauge: Any, *options: str) -> tuple[str, str]:
    """Start an endpoint that serves iperf3 as well; return its `HOST:PORT`, and the port for iperf3."""
    version()
    words = ("--bind", "127.0.0.1", "--port", "0", "--iperf3", "0", "--json", *options)
    endpoint = linkgauge.start("endpoint", *words, stderr=subprocess.DEVNULL)
    facts = json.loads(endpoint.stdout.readline())["listening"]
    return f"127.0.0.1:{facts['port']}", str(facts["iperf3"]["port"])


@pytest.mark.every
def test_two_tests_name_each_other_in_results_csv_and_stream(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """With tests, sessions and the rate of the direction that they share."""
    beside = start_beside(linkgauge, far_end)
    rows_path = tmp_path / "rows.csv"
    answer = linkgauge("run", far_end, *SHORT, "--json", "--csv", rows_path)
    lines = stop_beside(linkgauge, beside)
    assert answer.status == 0, answer
    others = answer.document["other_tests"]
    assert (others["most_tests"], others["most_sessions"], others["sent_mbit_s"]) == (1, 2, 0.0)
    assert others["received_mbit_s"] == pytest.approx(40, rel=0.3)
    (warning,) = [text for text in answer.document["warnings"] if "another test" in text]
    assert warning.startswith("another test on this endpoint: 1 test, 2 sessions, receives ")
    with rows_path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["session"] == "all"]
    assert {row["other_tests"] for row in rows} == {"1"}
    assert all(float(row["other_received_mbit_s"]) > 0 for row in rows)
    told = [line["other_tests"]["tests"] for line in lines if line["type"] == "interval" and line["other_tests"]]
    assert 1 in told
    assert lines[-1]["summary"]["other_tests"]["most_tests"] == 1
    shown = linkgauge("runs", "show", answer.document["run_id"])
    assert "at most 1 test, 2 sessions on this endpoint; it received" in " ".join(shown.out.split())


@pytest.mark.every
def test_a_test_alone_says_that_there_was_no_other(linkgauge: Any, far_end: str) -> None:
    """0 is measured."""
    document = linkgauge("run", far_end, "--seconds", "1", "--rate", "40M", "--json").document
    assert document["other_tests"] == {
        "most_tests": 0,
        "most_sessions": 0,
        "received_mbit_s": 0.0,
        "sent_mbit_s": 0.0,
    }
    assert document["plan"]["exclusive"] is False


@pytest.mark.parametrize(
    "command",
    [
        ("run",),
        *(
            pytest.param(words, marks=pytest.mark.every)
            for words in (("check", "gbe-fd-1500"), ("sweep",), ("respond",))
        ),
    ],
    ids=lambda words: words[0],
)
def test_an_exclusive_test_is_refused_beside_another(
    linkgauge: Any, far_end: str, command: tuple[str, ...]
) -> None:
    """By every command, with how many there are and for how long."""
    beside = start_beside(linkgauge, far_end)
    answer = linkgauge(*command, far_end, "--exclusive")
    stop_beside(linkgauge, beside)
    assert answer.status == 3, answer
    assert "declines: busy with 1 other test, for " in answer.err
    assert "--wait" in answer.err


def test_a_test_that_waits_for_its_turn_runs_once_the_other_has_ended(linkgauge: Any, far_end: str) -> None:
    """And has the endpoint for itself."""
    beside = start_beside(linkgauge, far_end)
    words = ("--exclusive", "--wait", "30", "--seconds", "1", "--rate", "40M", "--json")
    waiting = linkgauge.start("run", far_end, *words)
    stop_beside(linkgauge, beside)
    document = linkgauge.finish(waiting).document
    assert document["other_tests"]["most_tests"] == 0
    assert document["plan"]["exclusive"] is True


def test_an_exclusive_endpoint_refuses_a_second_test(linkgauge: Any, start_endpoint: StartEndpoint) -> None:
    """While the first one runs."""
    _, address = start_endpoint("--exclusive")
    beside = start_beside(linkgauge, address)
    answer = linkgauge("run", address, *SHORT)
    stop_beside(linkgauge, beside)
    assert_not_run(answer, "busy with another test, and has one at a time")


def test_a_wait_must_be_a_time_and_iperf3_servers_have_no_turns(linkgauge: Any) -> None:
    """A wrong command line, before anything is opened."""
    for words, texts in (
        (("127.0.0.1", "--wait", "soon"), ("--wait", "'soon'")),
        (("127.0.0.1", "--wait", "48h"), ("--wait", "86400")),
        (("iperf3://127.0.0.1", "--exclusive"), ("--exclusive", "one test at a time")),
        (("iperf3://127.0.0.1", "--wait", "5"), ("--wait", "one test at a time")),
    ):
        answer = linkgauge("run", *words)
        assert answer.status == 2, answer
        assert all(text in answer.err for text in texts), answer.err


@pytest.mark.every
def test_clients_of_iperf3_and_of_linkgauge_count_each_other(linkgauge: Any) -> None:
    """On their two ports of one endpoint; the server's output names the other test, too."""
    address, port = start_for_both(linkgauge)
    words = [str(PROGRAM), "-c", "127.0.0.1", "-p", port, "-t", "6", "-b", "30M", "-J", "--get-server-output"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as client:
        answer = linkgauge("run", address, *SHORT, "--sessions", "2", "--json")
        report = json.loads(client.communicate(timeout=DEADLINE_S)[0])
    assert answer.document["other_tests"]["most_tests"] == 1
    assert answer.document["other_tests"]["received_mbit_s"] == pytest.approx(30, rel=0.4)
    output = str(report.get("server_output_json") or report.get("server_output_text"))
    assert "another test on this endpoint: 1 test, 2 sessions, receives" in output


@pytest.mark.every
def test_an_exclusive_endpoint_is_busy_for_a_client_of_iperf3(linkgauge: Any) -> None:
    """With iperf3's own words for it."""
    address, port = start_for_both(linkgauge, "--exclusive")
    beside = start_beside(linkgauge, address)
    words = [str(PROGRAM), "-c", "127.0.0.1", "-p", port, "-t", "1"]
    refused = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    stop_beside(linkgauge, beside)
    assert refused.returncode == 1
    assert "the server is busy running a test" in refused.stdout + refused.stderr
