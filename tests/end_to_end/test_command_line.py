"""The command line against a real far end: checks, runs, JSON, CSV, signals."""

import csv
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .. import json_schemas
from ..command_line import RATE_LIMIT, wait_for_rows
from ..command_line import SHORT_RUN as SHORT

LONG = ("--seconds", "60", "--interval", "100ms", "--warmup", "0", *RATE_LIMIT)


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, read as a program would."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, strict=True))


def measured_sum(rows: list[dict[str, str]]) -> int:
    """Return the bytes that count: the sums of directions, warm-up left out."""
    counted = [row for row in rows if row["session"] == "all" and row["warmup"] == "0"]
    return sum(int(row["bytes"]) for row in counted if row["bytes"])  # what an end never told is empty


def number(value: object) -> bool:
    """Return whether a JSON value is a number, which true is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a file for rows. It is there already, and empty, so that it can be followed from the start."""
    path = tmp_path / "rows.csv"
    path.touch()
    return path


def slow_loopback() -> list[str]:
    """Return a command that starts another where loopback carries 200 Mb/s; nothing where this user has none.

    At full speed, the five seconds of the default test are ten of two cores.
    """
    script = 'ip link set lo up && tc qdisc add dev lo root tbf rate 200mbit burst 256k latency 20ms && exec "$@"'
    command = ["/usr/bin/env", "unshare", "-rn", "sh", "-c", script, "sh"]
    is_there = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    return command if is_there else []


@pytest.mark.every
def test_a_check_prints_a_verdict_with_its_evidence_and_exits_0(linkgauge: Any, far_end: str) -> None:
    """Loopback is far faster than 10 Mb Ethernet can be: that is another link, and said loudly."""
    answer = linkgauge("check", "10mb-fd", far_end, *SHORT)
    assert answer.status == 0, answer
    for words in (
        "NO VERDICT",
        "such a link can carry",
        "choose another preset, or auto",
        "AIX table 1",
        "9.48",
        "out →",
        "local",
        "remote",
        "busiest core",
        "RTT",
        "completed",
    ):
        assert words in answer.out
    assert "\x1b" not in answer.out + answer.err
    assert "saved as run" in answer.err


def test_a_check_that_falls_short_exits_1(linkgauge: Any, far_end: str) -> None:
    """No loopback carries 800 Gb/s."""
    answer = linkgauge("check", "800gbe-9000", far_end, *SHORT)
    assert answer.status == 1, answer
    assert "FAIL" in answer.out


def test_a_run_without_a_preset_has_nothing_to_expect_and_exits_0(linkgauge: Any, far_end: str) -> None:
    """It measures all the same."""
    answer = linkgauge("run", far_end, *SHORT, "--direction", "in", "--json")
    assert answer.status == 0, answer
    document = answer.document
    assert document["preset"] is None
    assert document["verdict"] == "none"
    assert document["expected"] == {"out": None, "in": None, "total": None}
    assert document["measured"]["out"] is None
    assert document["measured"]["in"]["bytes"] > 0
    assert document["measured"]["in"]["percent_of_expected"] is None


@pytest.mark.every
def test_without_a_terminal_the_app_is_a_loopback_test_of_5_s(linkgauge: Any) -> None:
    """So that `make run` in a pipe or in CI shows something true, and does not fail."""
    answer = linkgauge.in_process(within=slow_loopback())
    assert answer.status == 0, answer
    assert "loopback" in answer.out
    assert "5\u00a0s" in answer.out
    assert "completed" in answer.out


@pytest.mark.every
@pytest.mark.parametrize("options", [(), ("--why",)], ids=["silent", "requested"])
def test_a_run_without_a_preset_is_diagnosed_only_on_request(
    linkgauge: Any, far_end: str, options: tuple[str, ...]
) -> None:
    """Without an expected rate nothing is missing; `--why` looks for the bottleneck all the same."""
    answer = linkgauge("run", far_end, *SHORT, "--json", *options)
    assert answer.status == 0, answer
    assert bool(answer.document["why"]) is bool(options)


def test_the_json_document_has_every_field_of_the_contract(linkgauge: Any, far_end: str) -> None:
    """Field by field, the type of each, on a duplex check with sessions and a window."""
    answer = linkgauge(
        "check", "10gbe-fd-1500", far_end, *SHORT, "--direction", "duplex", "--sessions", "2",
        "--window", "256K", "--json",
    )  # fmt: skip
    assert answer.status in {0, 1}, answer
    document = answer.document
    assert {
        "schema", "run_id", "preset", "verdict", "plan", "expected", "measured", "cpu", "tcp", "warnings",
        "ended", "stretches",
    } <= document.keys()  # fmt: skip
    assert document["schema"] == 1
    assert isinstance(document["run_id"], str)
    assert document["preset"] == "10gbe-fd-1500"
    assert document["verdict"] in {"pass", "short", "fail", "none"}
    requested = {
        "workload": "stream", "direction": "duplex", "sessions": 2, "window_bytes": 262_144,
        "duration_s": 1.0, "warmup": "fixed", "warmup_s": 0.2,
    }  # fmt: skip
    assert requested.items() <= document["plan"].items()
    assert document["expected"] == {
        "out": None,
        "in": None,
        "total": {
            "mbit_s": 18_448.0,
            "basis": "documented",
            "source": "AIX table 2 (peak)",
        },
    }
    for direction in ("out", "in", "total"):
        measured = document["measured"][direction]
        assert {
            "bytes", "seconds", "mbit_s", "mib_s", "percent_of_expected", "transactions_s", "latency_us",
            "ci95_mbit_s", "ci95_percent", "ci95_transactions_s", "packets_s", "ip_mbit_s", "wire_mbit_s", "udp",
        } <= measured.keys()  # fmt: skip
        assert measured["transactions_s"] is measured["latency_us"] is None
        assert isinstance(measured["bytes"], int)
        assert measured["mbit_s"] == pytest.approx(measured["bytes"] * 8 / 1e6 / measured["seconds"], rel=1e-3)
        assert measured["mib_s"] == pytest.approx(measured["mbit_s"] * 1e6 / 8 / 1_048_576, rel=1e-3)
    total = document["measured"]["total"]
    assert total["bytes"] == sum(document["measured"][way]["bytes"] for way in ("out", "in"))
    assert total["percent_of_expected"] == pytest.approx(total["mbit_s"] / 18_448 * 100, rel=1e-3)
    for end in ("near", "far"):
        cpu = document["cpu"][end]
        assert list(cpu) == [
            "host_percent", "hottest_core_percent", "process_percent", "msec_per_mib", "msec_per_transaction",
        ]  # fmt: skip
        assert cpu.pop("msec_per_transaction") is None
        assert all(number(value) for value in cpu.values())
    tcp = document["tcp"]
    assert list(tcp) == [
        "retransmits", "rtt_us", "mss_bytes", "congestion", "mode", "mode_choice", "window_granted_bytes",
        "transfer_time_ratio", "efficiency_percent", "buffer_delay_percent", "buffer_delay_ms",
    ]  # fmt: skip
    assert tcp["mode_choice"] == "automatic"
    assert tcp["mode"] in {"copy", "sendfile"}
    assert isinstance(tcp["congestion"], str)
    assert all(number(tcp[name]) for name in ("retransmits", "rtt_us", "mss_bytes"))
    assert set(tcp["window_granted_bytes"]) == {"near", "far"}
    assert all(number(value) for value in tcp["window_granted_bytes"].values())
    assert all(isinstance(text, str) for text in document["warnings"])
    assert document["ended"]["reason"] == "completed"
    assert document["ended"]["detail"]


@pytest.mark.parametrize("direction", ["out", "duplex"])
def test_the_rows_of_the_csv_add_up_to_the_document(
    linkgauge: Any, far_end: str, path: Path, direction: str
) -> None:
    """What a spreadsheet adds up is what the verdict was made from; sessions add up to their direction."""
    answer = linkgauge(
        "check", "10mb-fd", far_end, *SHORT, "--sessions", 3, "--direction", direction, "--csv", path, "--json"
    )
    rows = rows_of(path)
    assert measured_sum(rows) == answer.document["measured"]["total"]["bytes"]
    assert {row["run_id"] for row in rows} == {answer.document["run_id"]}
    rows_with_payload = [row for row in rows if row["bytes"]]
    for elapsed in {(row["direction"], row["elapsed_s"]) for row in rows_with_payload}:
        same = [row for row in rows_with_payload if (row["direction"], row["elapsed_s"]) == elapsed]
        sessions = [int(row["bytes"]) for row in same if row["session"] != "all"]
        assert sum(sessions) == sum(int(row["bytes"]) for row in same if row["session"] == "all")


@pytest.mark.every
def test_a_second_run_continues_the_csv_and_the_log_exports_the_same_rows(
    linkgauge: Any, far_end: str, tmp_path: Path
) -> None:
    """One header, the rows of both; `runs export` gives them again from the log."""
    path, exported = tmp_path / "rows.csv", tmp_path / "exported.csv"
    ids = [linkgauge("run", far_end, *SHORT, "--csv", path, "--json").document["run_id"] for _ in range(2)]
    assert len(set(ids)) == 2
    assert list(dict.fromkeys(row["run_id"] for row in rows_of(path))) == ids
    assert linkgauge("runs", "export", "all", "--csv", exported).status == 0
    assert exported.read_bytes() == path.read_bytes()
    assert linkgauge("runs", "export", "all").out == path.read_text(encoding="utf-8")


@pytest.mark.every
def test_the_datagrams_of_a_udp_run_are_the_same_in_json_csv_and_the_run_log(
    linkgauge: Any, far_end: str, path: Path, tmp_path: Path
) -> None:
    """Whole: nothing on loopback is lost at this rate, and nothing of the end of a run is missing."""
    options = ("--workload", "udp", "--rate", "5M", "--seconds", "1", "--interval", "100ms", "--warmup", "0")
    answer = linkgauge("run", far_end, *options, "--direction", "duplex", "--csv", path, "--json")
    document = answer.document
    json_schemas.check("run.schema.json", document)
    rows = rows_of(path)
    for flow in ("out", "in"):
        measured = document["measured"][flow]
        counts = measured["udp"]
        whole = [row for row in rows if (row["direction"], row["session"]) == (flow, "all")]
        # Of the last datagrams the sender's sample may have all, or its drain.
        assert 0 < sum(int(row["sent"] or 0) for row in whole) <= counts["sent"]
        packets = sum(float(row["packets_s"]) * float(row["interval_s"]) for row in whole if row["packets_s"])
        assert packets == pytest.approx(measured["packets_s"] * measured["seconds"], rel=1e-3)
        assert measured["bytes"] == sum(int(row["bytes"]) for row in whole if row["bytes"])
        assert counts["sent"] == counts["received"] + counts["lost"]
        assert {row["rate_mbit_s"] for row in whole if row["sent"]} == {"5"}
        assert measured["ip_mbit_s"] > measured["mbit_s"]
    assert linkgauge("runs", "show", document["run_id"], "--json").document["measured"] == document["measured"]
    exported = tmp_path / "again.csv"
    assert linkgauge("runs", "export", document["run_id"], "--csv", exported).status == 0
    assert exported.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("content", [b"my thesis", b"run_id,something\r\n1,2\r\n", b"\x00\xff\n"])
def test_a_file_that_holds_something_else_is_left_alone(
    linkgauge: Any, far_end: str, tmp_path: Path, content: bytes
) -> None:
    """--csv with the wrong name costs nothing."""
    path = tmp_path / "precious"
    path.write_bytes(content)
    answer = linkgauge("run", far_end, *SHORT, "--csv", path)
    assert answer.status == 2
    assert "precious" in answer.err
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["no/such/directory/rows.csv", ".", "x" * 300, "/dev/full"])
def test_an_unwritable_csv_file_is_reported_before_connecting(linkgauge: Any, tmp_path: Path, name: str) -> None:
    """The peer is one that would be refused: the file comes first."""
    answer = linkgauge("run", "127.0.0.1:1", "--csv", tmp_path / name)
    assert answer.status == 2
    assert answer.err.startswith("linkgauge: --csv ")
    assert "Errno" not in answer.err
    assert answer.out == ""


@pytest.mark.every
def test_the_csv_can_be_followed_live_and_ctrl_c_ends_the_run_in_order(
    linkgauge: Any, far_end: str, path: Path
) -> None:
    """Rows come as they happen; SIGINT brings the summary of what was measured, and exit 130."""
    process = linkgauge.start("run", far_end, *LONG, "--csv", path, "--json")
    wait_for_rows(path, process, 6)
    process.send_signal(signal.SIGINT)
    answer = linkgauge.finish(process)
    assert answer.status == 130, answer
    document = answer.document
    assert document["ended"]["reason"] == "interrupted"
    assert document["measured"]["total"]["bytes"] == measured_sum(rows_of(path)) > 0
    listed = linkgauge("runs", "list", "--json").document
    assert [(run["run_id"], run["ended"]["reason"]) for run in listed] == [(document["run_id"], "interrupted")]


@pytest.mark.every
@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.every)])
def test_a_signal_ends_a_check_in_order_with_its_summary(
    linkgauge: Any, far_end: str, path: Path, number: signal.Signals
) -> None:
    """No verdict is passed on a run that did not run to its end."""
    process = linkgauge.start("check", "10mb-fd", far_end, *LONG, "--csv", path)
    wait_for_rows(path, process, 4)
    process.send_signal(number)
    answer = linkgauge.finish(process)
    assert answer.status == 128 + number, answer
    assert "NO VERDICT  stopped after" in answer.out
    assert f"interrupted by {number.name}" in answer.out


@pytest.mark.every
def test_ctrl_c_is_the_regular_end_of_a_run_without_an_end(linkgauge: Any, far_end: str, path: Path) -> None:
    """`--seconds none` runs until it is stopped, and is judged then."""
    options = ("--seconds", "none", *LONG[2:])
    process = linkgauge.start("check", "10mb-fd", far_end, *options, "--csv", path, "--json")
    wait_for_rows(path, process, 4)
    process.send_signal(signal.SIGINT)
    answer = linkgauge.finish(process)
    assert answer.status == 0, answer
    assert answer.document["ended"]["reason"] == "stopped"
    assert answer.document["verdict"] == "none"  # no 10 Mb Ethernet carries what loopback does
    assert answer.document["plan"]["duration_s"] is None


def test_ctrl_c_on_a_terminal_reaches_every_process_and_still_ends_in_order(linkgauge: Any, path: Path) -> None:
    """A terminal signals the whole process group: workers and embedded endpoint leave it to the near end."""
    process = linkgauge.start("run", "loopback", *LONG, "--csv", path, "--json", start_new_session=True)
    wait_for_rows(path, process, 4)
    os.killpg(process.pid, signal.SIGINT)
    answer = linkgauge.finish(process)
    assert answer.status == 130, answer
    assert answer.document["ended"]["reason"] == "interrupted"
    assert answer.document["measured"]["total"]["bytes"] == measured_sum(rows_of(path)) > 0
    assert [line for line in answer.err.splitlines() if "saved as run" not in line] == []


def test_ctrl_c_while_it_connects_ends_at_once(linkgauge: Any, silent_server: str) -> None:
    """Nothing was measured, and that is said; nothing is kept."""
    process = linkgauge.start("run", silent_server.address)
    silent_server.wait_for_client()
    process.send_signal(signal.SIGINT)
    answer = linkgauge.finish(process)
    assert answer.status == 130
    assert "interrupted before" in answer.err
    assert linkgauge("runs", "list", "--json").document == []


def test_a_far_end_that_is_killed_leaves_a_summary_of_what_was_measured(
    linkgauge: Any,
    start_endpoint: Callable[[], tuple[subprocess.Popen[str], str]],
    path: Path,
) -> None:
    """In the middle, with kill -9: the run ends, says why, exits 3, and what came until then counts."""
    endpoint, address = start_endpoint()
    process = linkgauge.start("run", address, *LONG, "--csv", path, "--json")
    wait_for_rows(path, process, 6)
    endpoint.kill()
    answer = linkgauge.finish(process)
    assert answer.status == 3, answer
    assert answer.document["ended"]["reason"] in {"peer_lost", "session_lost"}
    assert answer.document["measured"]["total"]["bytes"] == measured_sum(rows_of(path)) > 0


@pytest.mark.every
def test_a_far_end_says_goodbye_when_it_is_stopped(
    linkgauge: Any,
    start_endpoint: Callable[..., tuple[subprocess.Popen[str], str]],
    path: Path,
) -> None:
    """SIGTERM to an endpoint that waits for nobody ends the run in order, and the endpoint with 0."""
    endpoint, address = start_endpoint("--limit", "drain_s=0")
    process = linkgauge.start("run", address, *LONG, "--csv", path, "--json")
    wait_for_rows(path, process, 4)
    endpoint.terminate()
    answer = linkgauge.finish(process)
    assert answer.status == 3, answer
    assert answer.document["ended"]["reason"] == "peer_stopped"
    assert endpoint.wait(timeout=30) == 0


def test_an_interval_that_is_given_prints_a_line_for_each_into_a_pipe(linkgauge: Any, far_end: str) -> None:
    """Before the summary, and with its figures; JSON has none of them."""
    answer = linkgauge("run", far_end, *SHORT)
    heading, *lines = answer.out.partition("\n\n")[0].splitlines()
    assert heading.split() == ["seconds", "out", "Mb/s", "retr", "RTT", "CPU", "local", "remote"]
    begins = [float(line.split()[0].partition("-")[0]) for line in lines]
    assert begins == sorted(begins)
    assert len(lines) >= 6  # of ten: a busy machine joins some samples
    assert "warm-up" in lines[0]
    assert "plan " in answer.out.partition("\n\n")[2]


@pytest.mark.every
def test_on_a_terminal_a_live_line_shows_progress_and_is_gone_at_the_end(linkgauge: Any, far_end: str) -> None:
    """On stderr; stdout stays pure data."""
    ours, theirs = os.openpty()
    process = linkgauge.start(
        "run", far_end, *SHORT, "--json", stderr=theirs, env={**linkgauge.environment, "TERM": "xterm-256color"}
    )
    os.close(theirs)
    drawn = b""
    while True:
        try:
            part = os.read(ours, 65_536)
        except OSError:  # Linux says so when the other side has closed
            break
        if not part:
            break
        drawn += part
    os.close(ours)
    answer = linkgauge.finish(process)
    assert answer.document["ended"]["reason"] == "completed"
    text = drawn.decode()
    assert "Mb/s" in text
    assert "CPU local" in text
    assert "\x1b[2K" in text
    assert "saved as run" in text.splitlines()[-1]


@pytest.mark.parametrize(
    "workload", ["rr", *(pytest.param(other, marks=pytest.mark.every) for other in ("crr", "fetch"))]
)
def test_transactions_are_reported_in_json_csv_and_words(
    linkgauge: Any, far_end: str, tmp_path: Path, workload: str
) -> None:
    """Rate and percentiles in each; the rows' transactions are those of the document."""
    target = tmp_path / "rows.csv"
    timing = SHORT[: -len(RATE_LIMIT)]
    answer = linkgauge(
        "run", far_end, *timing, "--workload", workload, "--response", "3000", "--csv", str(target), "--json"
    )
    assert answer.status == 0, answer
    total = answer.document["measured"]["total"]
    times = total["latency_us"]
    assert list(times) == ["min", "p50", "p90", "p99", "p99_9", "max"]
    assert 0 < times["min"] <= times["p50"] <= times["p99"] <= times["max"]
    with target.open(newline="", encoding="utf-8") as file:
        whole = [row for row in csv.DictReader(file) if row["session"] == "all" and row["warmup"] == "0"]
    rows = [row for row in whole if row["bytes"]]  # in the last interval the asking end may tell nothing
    counted = sum(float(row["transactions_s"]) * float(row["interval_s"]) for row in rows)
    assert counted == pytest.approx(total["transactions_s"] * total["seconds"], rel=1e-3)
    rows_with_payload = [
        row for row in rows if float(row["transactions_s"])
    ]  # a busy machine has intervals of none
    assert all(row["latency_p50_us"] and row["latency_p99_us"] for row in rows_with_payload)
    assert rows_with_payload
    shown = linkgauge("runs", "show", answer.document["run_id"])
    assert "trans/s" in shown.out
    assert "p99.9" in shown.out


def test_a_burst_of_a_stream_is_refused(linkgauge: Any, far_end: str) -> None:
    """With what has one, and status 2."""
    answer = linkgauge("run", far_end, "--burst", "4")
    assert answer.status == 2
    assert "only rr" in answer.err


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (
            ("-b", "100M", "-t", "0.5", "-P", "2", "-w", "64K"),
            ("--rate", "100M", "--seconds", "0.5", "--sessions", "2", "--window", "64K"),
        ),
        (
            ("-R", "-i", "0.1", "-n", "2M"),
            ("--direction", "in", "--interval", "0.1", "--bytes", "2M", "--seconds", "none"),
        ),
        pytest.param(
            ("--bidir", "-n", "4M"),
            ("--direction", "duplex", "--bytes", "4M", "--seconds", "none"),
            marks=pytest.mark.every,
        ),
    ],
)
def test_the_spellings_of_iperf3_are_those_of_linkgauge(
    linkgauge: Any, far_end: str, short: tuple[str, ...], long: tuple[str, ...]
) -> None:
    """Both make the same plan, and a run that ends regularly."""
    documents = [
        linkgauge("run", far_end, "-J", *short).document,
        linkgauge("run", far_end, "--json", *long).document,
    ]
    assert documents[0]["plan"] == documents[1]["plan"]
    assert [document["ended"]["reason"] for document in documents] == ["completed", "completed"]


def test_cores_that_this_machine_lacks_are_a_wrong_command_line(linkgauge: Any, far_end: str) -> None:
    """Before anything is measured, with the cores that there are."""
    answer = linkgauge("run", far_end, *SHORT, "--cores", "1000")
    assert answer.status == 2
    assert answer.err.startswith("linkgauge: --cores 1000 is invalid; this machine has cores 0")
    assert answer.out == ""


def test_a_check_needs_no_preset_and_ends_with_its_verdict(linkgauge: Any, far_end: str) -> None:
    """Check HOST is check auto HOST."""
    answer = linkgauge("check", far_end, *SHORT)
    assert answer.status == 0, answer
    assert "preset loopback: " in answer.err
    assert answer.out.splitlines()[-1].startswith("• NO VERDICT")
