"""`--json-stream` and `--json` of real tests, read line by line and compared with the shipped schemas."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from .. import json_schemas
from ..command_line import RATE_LIMIT

SHORT = "--seconds 1 --interval 100ms --warmup 0.2"
LIMITED = " ".join((SHORT, *RATE_LIMIT))


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return the objects of a stream, each of which fits the schema."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        json_schemas.check("stream.schema.json", line)
    return lines


@pytest.mark.every
@pytest.mark.parametrize(
    "command",
    [
        f"run PEER --direction duplex --sessions 2 --probe {LIMITED}",
        f"run PEER --workload rr {SHORT}",
        "run PEER --warmup auto --seconds 2 --interval 100ms --rate 100M",
        f"check 100gbe-1500 PEER {LIMITED}",
    ],
)
def test_a_test_is_a_stream_from_its_start_to_its_summary(
    linkgauge: Callable[..., Any], far_end: str, command: str
) -> None:
    """The summary is the document of --json, and the intervals' bytes add up to it."""
    answer = linkgauge(*command.replace("PEER", far_end).split(), "--json-stream")
    lines = lines_of(answer.out)
    kinds = [line["type"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert kinds.count("interval") >= 8
    assert len({line["run_id"] for line in lines}) == 1
    summary = lines[-1]["summary"]
    json_schemas.check("run.schema.json", summary)
    counted = [line for line in lines if line["type"] == "interval" and not line["warmup"]]
    for flow in ("out", "in"):
        total = sum(line[flow]["bytes"] or 0 for line in counted if line[flow] is not None)
        assert total == (summary["measured"][flow]["bytes"] if summary["measured"][flow] else 0)


@pytest.mark.every
def test_a_confirmation_follows_the_lines_of_both_runs(linkgauge: Callable[..., Any], far_end: str) -> None:
    """The first one was slow because it was asked to be: a rate in the test's own limit is not left to chance."""
    options = ("--rate", "2M", "--block", "64", *SHORT.split(), "--confirm", "--json-stream")
    answer = linkgauge("run", far_end, *options)
    assert answer.status == 0, answer.err
    lines = [line for line in lines_of(answer.out) if line["type"] in {"start", "end", "confirmation"}]
    assert [line["type"] for line in lines] == ["start", "end", "start", "end", "confirmation"]
    first, second = lines[1]["run_id"], lines[3]["run_id"]
    confirmation = lines[-1]["confirmation"]
    assert lines[1]["summary"]["why"][0]["code"] == confirmation["code"] == "rate-limited"
    assert (lines[-1]["run_id"], confirmation["run_id"]) == (first, second)
    assert (confirmation["option"], confirmation["confirmed"]) == ("without --rate", True)
    assert "confirming: without --rate, 1 s" in answer.err
    assert f"saved as runs {first} and {second}" in answer.err


@pytest.mark.every
def test_an_interrupted_confirmation_keeps_the_first_result(linkgauge: Callable[..., Any], far_end: str) -> None:
    """The verdict is of the link as it is; the exit status says that the command was interrupted."""
    cli: Any = linkgauge
    options = ("--rate", "2M", "--block", "64", "--seconds", "2", "--confirm", "--json")
    process = cli.start("run", far_end, *options)
    for line in process.stderr:
        if "confirming: without --rate, 2 s" in line:
            break
    process.send_signal(signal.SIGINT)
    answer = cli.finish(process)
    assert answer.status == 128 + signal.SIGINT
    json_schemas.check("run.schema.json", answer.document)
    assert answer.document["ended"]["reason"] == "completed"
    assert answer.document["measured"]["out"]["mbit_s"] == pytest.approx(2, rel=0.2)
    confirmation = answer.document["confirmation"]
    assert (confirmation["option"], confirmation["confirmed"]) == ("without --rate", None)
    assert "interrupted" in confirmation["text"]


@pytest.mark.every
def test_a_sweep_is_a_stream_of_its_runs_and_its_document(linkgauge: Callable[..., Any], far_end: str) -> None:
    """Each run has its start and its end between those of the sweep."""
    answer = linkgauge(
        "sweep", far_end, "--window", "64K,256K", "--direction", "out,in", "--seconds", "0.5", "--json-stream"
    )
    lines = lines_of(answer.out)
    kinds = [line["type"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("sweep_start", "sweep_end")
    assert (kinds.count("start"), kinds.count("end")) == (4, 4)
    assert lines[0]["runs"] == 4
    json_schemas.check("sweep.schema.json", lines[-1]["summary"])
    assert {cell["run_id"] for cell in lines[-1]["summary"]["cells"]} == {
        line["run_id"] for line in lines if line["type"] == "end"
    }


def test_a_test_that_cannot_be_run_is_an_error_line(linkgauge: Callable[..., Any]) -> None:
    """So that a program which reads the stream alone learns of it."""
    answer = linkgauge("run", "127.0.0.1:1", "--json-stream")
    (line,) = lines_of(answer.out)
    assert (line["type"], answer.status) == ("error", 3)
    assert "nothing listens on 127.0.0.1:1" in line["text"]


@pytest.mark.every
def test_two_kinds_of_json_are_refused(linkgauge: Callable[..., Any]) -> None:
    """Before anything is connected."""
    answer = linkgauge("run", "127.0.0.1:1", "--json", "--json-stream")
    assert (answer.status, answer.out) == (2, "")
    assert "--json-stream and --json exclude each other" in answer.err
