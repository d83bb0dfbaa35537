"""Latency under load from the command line, against a real endpoint."""

import json
import signal
from typing import Any

import pytest


def plain(text: str) -> str:
    """Return text with plain spaces."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.alone
@pytest.mark.every
def test_one_command_loads_a_link_in_every_direction_and_a_saved_run_says_the_same(
    linkgauge: Any, far_end: str
) -> None:
    """Milliseconds, the grade and its round trips; `runs show` prints them again."""
    answer = linkgauge("respond", far_end, "--label", "evening")
    assert answer.status == 0, answer
    text = plain(answer.out)
    for words in ("idle ", "load out", "load in", "both ", "grade ", "a minute", "UDP datagrams every 10 ms"):
        assert words in text, words
    assert "unknown" not in text.partition("CPU")[0]
    assert "saved as run" in answer.err
    run_id = answer.err.rpartition("saved as run ")[2].split()[0]
    shown = linkgauge("runs", "show", run_id)
    assert text.partition("CPU")[0] in plain(shown.out)
    (line,) = [line for line in linkgauge("runs").out.splitlines() if run_id in line]
    assert "grade A" in plain(line)


@pytest.mark.every
def test_one_direction_alone_is_one_load(linkgauge: Any, far_end: str) -> None:
    """It ends by itself, once rate and latency are steady."""
    answer = linkgauge("respond", far_end, "--direction", "in", "--sessions", "2")
    assert answer.status == 0, answer
    text = plain(answer.out)
    assert "responsiveness test, in, 2 sessions each way" in text
    assert "load in" in text
    assert "load out" not in text
    assert "completed" in text


@pytest.mark.every
def test_ctrl_c_keeps_what_was_measured(linkgauge: Any, far_end: str) -> None:
    """The first load, where it came during the second."""
    process = linkgauge.start("respond", far_end, "--json-stream")
    assert process.stdout is not None
    types: list[str] = []
    for line in process.stdout:
        types.append(json.loads(line)["type"])
        if types.count("interval") == 10:
            process.send_signal(signal.SIGINT)
            break
    last = process.stdout.readlines()[-1]
    assert process.wait(40) == 130
    end = json.loads(last)
    assert end["type"] == "end"
    assert end["summary"]["ended"]["reason"] == "interrupted"
    shown = plain(linkgauge("runs", "show", end["run_id"]).out)
    assert "load out" in shown
    assert "interrupted by Ctrl-C" in shown


@pytest.mark.every
@pytest.mark.parametrize("limit", [("--max-rise", "9999"), ("--grade", "D")])
def test_a_pass_mark_judges_the_latency_and_is_saved_with_the_run(
    linkgauge: Any, far_end: str, limit: tuple[str, str]
) -> None:
    """No loopback has a queue of seconds."""
    answer = linkgauge("respond", far_end, "--direction", "in", "--sessions", "1", *limit, "--json")
    assert answer.status == 0, answer
    document = answer.document
    assert document["verdict"] == "pass"
    assert document["latency_limit"]
    assert [load["direction"] for load in document["responsiveness"]["loads"]] == ["in"]
    assert "latency rose by" in linkgauge("runs", "show", document["run_id"]).out
