"""Far ends at the other end of a program that carries bytes, as ssh does: this one stays on this machine."""

import asyncio
import contextlib
import shlex
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import PeerError, PeerUnreachable
from linkgauge.engine.model.events import Reason
from linkgauge.engine.model.peer import Peer, SshSettings
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan, Settings
from linkgauge.engine.ssh.askpass import serve_askpass
from linkgauge.engine.ssh.data_path import find_data_path
from linkgauge.engine.ssh.session import open_ssh_far_end

# Run on asyncio alone: the command line's tests of ssh run on uvloop.
pytestmark = pytest.mark.loop("asyncio")

DEADLINE_S = 40.0
PLAN = Plan(Settings(Direction.DUPLEX, 1), duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10)


def carrier(folder: Path, *first: str) -> Peer:
    """Return a peer whose ssh runs what it is told here, after other commands, without linkgauge on PATH."""
    programs = folder / "bin"
    programs.mkdir()
    for name, path in (("sh", "/bin/sh"), ("python3", str(Path(sys.base_prefix, "bin", "python3")))):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.quote(path)} "$@"\n')
        (programs / name).chmod(0o755)
    program = folder / "carrier"
    lines = [
        "#!/bin/sh",
        'case " $* " in *" -G "*) echo hostname 127.0.0.1; exit;; esac',
        "for told; do :; done",
        *first,
        # sshd of OpenSSH gives a far end a pair of sockets; other servers give pipes.
        f'cat | PATH={shlex.quote(str(programs))} /bin/sh -c "$told" | cat',
    ]
    program.write_text("\n".join([*lines, ""]))
    program.chmod(0o755)
    return Peer("db-02", ssh=SshSettings(command=str(program)))


async def test_the_engine_travels_and_one_login_carries_several_runs(
    tmp_path: Path, record: Callable[..., Any]
) -> None:
    """Where sshd tells no addresses it listens on all of them. A far end that has gone is told as such."""
    async with asyncio.timeout(DEADLINE_S), open_ssh_far_end(carrier(tmp_path)) as far:
        assert far.is_up
        assert not far.data_path.is_through_ssh
        for recorded in (await record(PLAN, far), await record(PLAN, far)):
            assert recorded.end.reason is Reason.COMPLETED
            assert recorded.started.peer == "ssh://db-02"
            assert recorded.started.far.event_loop == "asyncio"
    with pytest.raises(PeerUnreachable, match="ssh has ended"):
        far.open_control()


async def test_a_login_that_prints_without_end_is_given_up(tmp_path: Path) -> None:
    """What it prints is not kept."""
    peer = carrier(tmp_path, "while echo welcome to this host; do :; done")
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(PeerError, match="prints too much"):
            async with open_ssh_far_end(peer):
                pytest.fail("it cannot be up")


async def test_a_far_end_that_says_nonsense_is_not_understood(tmp_path: Path) -> None:
    """The mark alone does not make a far end."""
    peer = carrier(tmp_path, "echo linkgauge-far up nonsense; exec sleep 60")
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(PeerError, match="cannot be understood"):
            async with open_ssh_far_end(peer):
                pytest.fail("it cannot be up")


async def test_leaving_in_the_middle_of_a_login_leaves_nothing(tmp_path: Path) -> None:
    """As when a person gives up: the program that waits is ended."""
    begun = tmp_path / "begun"
    peer = carrier(tmp_path, f"echo > {shlex.quote(str(begun))}; exec sleep 60")

    async def log_in() -> None:
        async with open_ssh_far_end(peer):
            pytest.fail("it cannot be up")

    async with asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(log_in())
        while not begun.exists():  # noqa: ASYNC110 - only looking tells of another process
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_data_port_that_never_answers_is_given_up_with_what_to_do() -> None:
    """Its queue is full, so the kernel drops what comes: as a firewall does."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(2):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        peer, port = Peer("db-02", ssh=SshSettings()), listener.getsockname()[1]
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(PeerUnreachable, match=rf"TCP port {port} in 5 s \(tried 127.0.0.1\).*--via-ssh"):
                await find_data_path(peer, {"hostname": "127.0.0.1"}, None, (None, port))


async def test_what_ssh_asks_is_answered_by_whoever_is_asked() -> None:
    """An answer is printed, as ssh reads it; none is a failure."""
    asked: list[str] = []

    async def ask(question: str) -> str | None:
        asked.append(question)
        return "open sesame" if "passphrase" in question else None

    async with asyncio.timeout(DEADLINE_S), serve_askpass(ask) as environment:
        said: list[tuple[bytes, int | None]] = []
        for question in ("Enter passphrase for 'key':", "Continue (yes/no)?\nReally?"):
            process = await asyncio.create_subprocess_exec(
                environment["SSH_ASKPASS"], question, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            said.append((out, process.returncode))
    assert said == [(b"open sesame\n", 0), (b"", 1)]
    assert asked == ["Enter passphrase for 'key':", "Continue (yes/no)?\nReally?"]
    assert not Path(environment["SSH_ASKPASS"]).exists()  # noqa: ASYNC240 - a look is no work
