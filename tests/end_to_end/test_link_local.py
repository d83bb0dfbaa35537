"""IPv6 link-local addresses: every workload between two hosts that have no other address on their link."""

import json
import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .conftest import DEADLINE_S
from .veth_link import VethLink

KEY: Final = "k" * 20
NEAR, FAR = "fe80::1%near0", "fe80::2%near0"  # both as the near host writes them
PORT: Final = 5210
# Runs each workload on one event loop, in one process: the processes of its workers are the real ones.
RUN_EACH: Final = textwrap.dedent("""
    import asyncio, json, sys
    from linkgauge.engine.host.event_loop import run
    from linkgauge.engine.model.events import Ended, Started
    from linkgauge.engine.model.peer import Peer
    from linkgauge.engine.model.directions import Direction
    from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings, SocketOptions
    from linkgauge.engine.model.shared_key import SharedKey
    from linkgauge.engine.model.workload import Workload
    from linkgauge.engine.near.run import open_run

    async def main(peer, source, key):
        for workload in (Workload.STREAM, Workload.RR, Workload.CRR, Workload.FETCH, Workload.UDP):
            sizes = {"response_bytes": 100_000} if workload is Workload.FETCH else {}
            limit = {"rate_bit_s": 100_000_000} if workload.is_bulk and not workload.is_datagram else {}
            settings = Settings(Direction.DUPLEX, rate_bit_s=20_000_000 if workload.is_datagram else None)
            plan = Plan(
                settings, workload, SECOND_NS // 2, SECOND_NS // 10, SECOND_NS // 10,
                socket=SocketOptions(source=source or None), probe=workload is Workload.STREAM, **sizes, **limit,
            )
            async with asyncio.timeout(20), open_run(plan, Peer.parse(peer).with_key(SharedKey(key))) as each:
                events = [event async for event in each]
            loops = {event.near.event_loop for event in events if isinstance(event, Started)}
            nics = {event.near.nic.name for event in events if isinstance(event, Started)}
            print(json.dumps([workload, events[-1].end.reason, *loops, *nics]))

    run(main(*sys.argv[1:]))
""")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Give an environment with directories of the test's own, a key and the peer's line in the keys file."""
    config = tmp_path / "config"
    config.mkdir()
    (config / "keys").write_text(f"[{FAR}]:{PORT} {KEY}\n")
    (config / "keys").chmod(0o600)
    folders = {"LINKGAUGE_DATA_DIR": str(tmp_path / "data"), "LINKGAUGE_CONFIG_DIR": str(config)}
    return {**os.environ, **folders, "PYTHONWARNINGS": "error"}


def command(*arguments: str) -> list[str]:
    """Return the command line of linkgauge."""
    return [sys.executable, "-P", "-m", "linkgauge", *arguments]


def without_uvloop(environment: dict[str, str], folder: Path) -> dict[str, str]:
    """Return an environment in which uvloop does not import."""
    (folder / "uvloop.py").write_text("raise ImportError('left out')\n")
    return {**environment, "PYTHONPATH": f"{folder}:{environment.get('PYTHONPATH', '')}"}


@pytest.fixture
def endpoint(link: VethLink, environment: dict[str, str]) -> Iterator[str]:
    """Give the first line of a keyed endpoint that listens on the link's far end."""
    options = ["endpoint", "--bind", "fe80::2%far0", "--port", str(PORT)]
    process = subprocess.Popen(
        [*link.far, *command(*options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**environment, "LINKGAUGE_KEY": KEY},
    )
    assert process.stdout is not None
    yield process.stdout.readline()
    process.terminate()
    process.communicate(timeout=DEADLINE_S)


@pytest.mark.every
@pytest.mark.parametrize("loop", ["uvloop", pytest.param("asyncio", marks=pytest.mark.every)])
@pytest.mark.parametrize("source", [NEAR, pytest.param("", marks=pytest.mark.every)])
def test_every_workload_runs_in_both_directions(
    link: VethLink, environment: dict[str, str], endpoint: str, loop: str, source: str, tmp_path: Path
) -> None:
    """On each event loop: uvloop's own way to connect loses the interface of an address."""
    assert endpoint
    if loop == "asyncio":
        environment = without_uvloop(environment, tmp_path)
    script = [sys.executable, "-P", "-c", RUN_EACH, f"[{FAR}]:{PORT}", source, KEY]
    done = subprocess.run(
        [*link.near, *script], env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines == [[each, "completed", loop, "near0"] for each in ("stream", "rr", "crr", "fetch", "udp")]


@pytest.mark.every
def test_the_command_line_takes_and_shows_such_addresses(
    link: VethLink, environment: dict[str, str], endpoint: str
) -> None:
    """The peer with its port, --bind, --source, the keys file and the line to paste at the other host."""
    assert f"[fe80::2%far0]:{PORT}" in endpoint
    options = ["--workload", "crr", "--direction", "in", "--seconds", "0.5", "--json", "--source", NEAR]
    for peer, status in ((f"[{FAR}]:{PORT}", 0), (f"[fe80::2%no0]:{PORT}", 3)):
        done = subprocess.run(
            [*link.near, *command("run", peer, *options)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == status, done.stderr
        if status:
            assert "this machine has no interface no0; it has lo, near0" in " ".join(done.stderr.split())
        else:
            assert json.loads(done.stdout)["measured"]["total"]["transactions_s"] > 0


def test_the_printed_command_works_once_the_interface_is_named(
    link: VethLink, environment: dict[str, str], tmp_path: Path
) -> None:
    """The endpoint's host has no other address, and cannot know the interface of the host that connects."""
    far = {**environment, "LINKGAUGE_DATA_DIR": str(tmp_path / "far")}
    with subprocess.Popen([*link.far, *command("endpoint")], stdout=subprocess.PIPE, text=True, env=far) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        words = shlex.split(lines[2].replace("INTERFACE", "near0").replace("FILE", lines[1].split()[3].rstrip(",")))
        try:
            done = subprocess.run(
                [*link.near, *command(*words[1:], "--seconds", "0.5")],
                env=environment,
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
        finally:
            process.terminate()
    assert done.returncode == 0, (lines, done)
    assert "is the other host's interface" in lines[3]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run", "fe80::2"], "the interface of this machine that leads there: fe80::2%eth0"),
        (["check", "auto", "[fe80::2]:5210"], "the interface of this machine that leads there: fe80::2%eth0"),
        (["run", "ssh://[fe80::2]"], "the interface of this machine that leads there: fe80::2%eth0"),
        (["run", "fe80::2%near0:5210"], "write a port as [fe80::1%eth0]:PORT"),
        (["run", "loopback", "--source", "fe80::1"], "that leads there: fe80::1%eth0"),
        (["endpoint", "--bind", "fe80::1"], "that leads there: fe80::1%eth0"),
        (["endpoint", "--bind", "fe80::1%a/b"], "without spaces, colons, slashes and brackets"),
    ],
)
def test_an_address_without_its_interface_is_a_wrong_command(linkgauge: Any, words: list[str], text: str) -> None:
    """The error shows how it is written."""
    answer = linkgauge(*words)
    assert answer.status == 2, answer
    assert text in " ".join(answer.err.split())


@pytest.mark.every
def test_a_remote_end_that_ssh_starts_is_reached_over_the_link(link: VethLink, linkgauge: Any, sshd: Any) -> None:
    """Data goes directly to the address by which ssh got there."""
    sshd.start(address="[fe80::2%far0]", within=lambda words: [*link.far, *words])
    peer = f"ssh://[{FAR}]:{sshd.port}"
    words = ["run", peer, "--workload", "crr", "--direction", "duplex", "--seconds", "1", "--json"]
    done = subprocess.run(
        [*link.near, *command(*words)],
        env=linkgauge.environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["measured"]["total"]["transactions_s"] > 0
    sshd.wait_until_gone()


@pytest.mark.every
@pytest.mark.parametrize("workload", ["stream", "udp"])
def test_an_interface_may_have_any_name_of_the_kernel(link: VethLink, linkgauge: Any, workload: str) -> None:
    """Letters beyond ASCII are neither refused nor taken for those of a domain."""
    for within, name, address in ((link.near, "near0", "fe80::1"), (link.far, "far0", "fe80::2")):
        link.run(within, "ip", "link", "set", name, "down")
        link.run(within, "ip", "link", "set", name, "name", "ünet~0")
        link.run(within, "ip", "link", "set", "ünet~0", "up")
        link.run(within, "ip", "addr", "add", f"{address}/64", "dev", "ünet~0", "nodad")
    endpoint = linkgauge.start("endpoint", "--open", "--bind", "fe80::2%ünet~0", within=link.far)
    assert "listening on [fe80::2%ünet~0]:" in endpoint.stdout.readline()
    options = ("--open", "--source", "fe80::1%ünet~0", "--workload", workload, "--rate", "10M", "--seconds", "0.5")
    answer = linkgauge.in_process("run", "fe80::2%ünet~0", *options, "--json", within=link.near)
    assert answer.status == 0, answer
    assert answer.document["measured"]["total"]["bytes"] > 0
    answer = linkgauge.in_process("run", "fe80::2", *options[:1], "--device", "ünet~0", within=link.near)
    assert answer.status == 2
