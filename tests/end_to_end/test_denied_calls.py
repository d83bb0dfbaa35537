"""Hosts that may not use a fast way of the kernel: they take the slow one, and the run says so."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.host.machine_measurements import identify_machine

from ..denied_calls import denying, is_possible

pytestmark = pytest.mark.skipif(not is_possible(), reason="filters of seccomp(2) need Linux on x86-64 or aarch64")
SHORT = ("--seconds", "0.5", "--interval", "100ms", "--warmup", "0", "--json")


def every(*values: object) -> Any:
    """Return a further case."""
    return pytest.param(*values, marks=pytest.mark.every)


@pytest.mark.parametrize(
    ("mode", "further", "end"),
    [
        ("sendfile", (), "local"),
        every("sendfile", ("--bytes", "1M"), "local"),
        every("sendfile", ("--workload", "fetch"), "remote"),
        every("discard", (), "remote"),
        every("discard", ("--workload", "fetch"), "local"),
    ],
)
def test_a_denied_mode_falls_back_to_copy_with_a_warning(
    linkgauge: Any, mode: str, further: tuple[str, ...], end: str
) -> None:
    """The result says how payload moved."""
    answer = linkgauge.in_process("run", "loopback", *SHORT, "--mode", mode, *further, within=denying(mode))
    assert answer.status == 0, answer
    assert answer.document["measured"]["total"]["bytes"] > 0
    assert answer.document["tcp"]["mode"] == "copy"
    (warning,) = answer.document["warnings"]
    assert warning.startswith(f"mode {mode}: the {end} system does not allow it to this process")


@pytest.fixture
def chosen(linkgauge: Any, tmp_path: Path) -> Path:
    """Have this machine's trial say that sendfile is faster; return the file that has it."""
    linkgauge.environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    path = tmp_path / "cache" / "linkgauge" / "fastest-mode.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({identify_machine().key: {"copy_bit_s": 1, "sendfile_bit_s": 2}, "other": 1}))
    return path


@pytest.mark.every
def test_a_choice_of_before_that_is_denied_now_is_forgotten(linkgauge: Any, chosen: Path) -> None:
    """The first run warns, and the next one tries again. Trials of other machines stay."""
    answers = [
        linkgauge.in_process("run", "loopback", *SHORT, "--rate", "100M", within=denying("sendfile"))
        for _ in range(2)
    ]
    assert [answer.status for answer in answers] == [0, 0]
    assert [answer.document["tcp"]["mode"] for answer in answers] == ["copy", "copy"]
    assert [len(answer.document["warnings"]) for answer in answers] == [1, 0]
    assert json.loads(chosen.read_text()) == {"other": 1}


@pytest.mark.every
@pytest.mark.usefixtures("chosen")
def test_an_endpoint_falls_back_to_copy(linkgauge: Any) -> None:
    """Only its own process is denied what is chosen for this host."""
    endpoint = linkgauge.start(
        *("endpoint", "--bind", "127.0.0.1", "--port", "0"), within=denying("sendfile"), stderr=subprocess.DEVNULL
    )
    address = endpoint.stdout.readline().removeprefix("listening on ").strip()
    answer = linkgauge("run", address, *SHORT, "--direction", "in", "--rate", "100M")
    assert answer.status == 0, answer
    assert answer.document["tcp"]["mode"] == "copy"


@pytest.mark.every
@pytest.mark.parametrize(
    ("call", "mode"),
    [
        every("memfd_create", None),
        every("udp_segment", "quality"),
        every("udp_gro", "rate"),
        ("udp_group", "quality"),
    ],
)
def test_a_denied_way_of_datagrams_or_memory_ends_no_run(linkgauge: Any, call: str, mode: str | None) -> None:
    """Groups that cannot be sent are sent one datagram at a time."""
    workload = () if mode is None else ("--workload", "udp", "--mode", "rate")
    answer = linkgauge.in_process("run", "loopback", *SHORT, "--rate", "1G", *workload, within=denying(call))
    assert answer.status == 0, answer
    assert answer.document["measured"]["total"]["bytes"] > 0
    if mode is not None:
        assert answer.document["measured"]["out"]["udp"]["mode"] == mode
