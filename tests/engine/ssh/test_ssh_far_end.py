"""Far ends at the other end of a program that carries bytes, as ssh does: this one stays on this machine."""

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerError, PeerUnreachable
from linkgauge.engine.model.peer import Peer, SshSettings
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.ssh.login import SSH_COMMAND_VARIABLE
from linkgauge.engine.ssh.ssh_far_end import open_ssh_far_end

from ..conftest import RATE_BIT_S
from ..waiting import until

# Run on asyncio alone: the command line's tests of ssh run on uvloop.
pytestmark = pytest.mark.loop("asyncio")

DEADLINE_S = 40.0
PLAN = Plan(
    Settings(Direction.DUPLEX, 1), duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=RATE_BIT_S
)


def carrier(folder: Path, *first: str) -> Peer:
    """Return a peer whose ssh runs its command here, after other commands, without linkgauge on PATH."""
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


async def test_the_engine_is_sent_over_ssh_and_a_login_carries_several_runs(
    tmp_path: Path, record: Callable[..., Any]
) -> None:
    """If sshd gives no addresses it listens on all of them. A far end that has gone is reported as gone."""
    async with asyncio.timeout(DEADLINE_S), open_ssh_far_end(carrier(tmp_path)) as far:
        assert far.is_up
        assert not far.data_path.is_through_ssh
        for recorded in (await record(PLAN, far), await record(PLAN, far)):
            assert recorded.end.reason is Reason.COMPLETED
            assert recorded.started.peer == "ssh://db-02"
            assert recorded.started.far.event_loop == "asyncio"
    with pytest.raises(PeerUnreachable, match="ssh connection has ended"):
        far.open_control()


async def test_a_login_with_endless_output_is_abandoned(tmp_path: Path) -> None:
    """Its output is not kept."""
    peer = carrier(tmp_path, "while echo welcome to this host; do :; done")
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(PeerError, match="print too much"):
            async with open_ssh_far_end(peer):
                pytest.fail("it cannot be up")


@pytest.mark.parametrize("word", ["later", "engine", "ready"])
async def test_a_far_end_that_gains_time_line_by_line_is_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """It has the deadline of the start once, whatever it says or asks for meanwhile."""
    monkeypatch.setattr("linkgauge.engine.ssh.ssh_far_end.STARTUP_DEADLINE_S", 0.5)
    program = tmp_path / "hostile"
    program.write_text(
        '#!/bin/sh\ncase " $* " in *" -G "*) echo hostname 127.0.0.1; exit;; esac\n'
        f"cat <&0 >/dev/null &\nwhile echo linkgauge-far {word}; do sleep 0.1; done\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv(SSH_COMMAND_VARIABLE, str(program))
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(PeerUnreachable, match="did not come up in time"):
            async with open_ssh_far_end(Peer("db-02", ssh=SshSettings())):
                pytest.fail("it cannot be up")


@pytest.mark.parametrize(
    "answer",
    ["nonsense", "$(printf %09000d 0 | tr 0 [)", """'{"port":70000}'""", "{}"],
    ids=["a word", "lists without end", "no such port", "no port"],
)
async def test_a_far_end_that_says_nonsense_is_not_understood(tmp_path: Path, answer: str) -> None:
    """The mark alone does not make a far end."""
    peer = carrier(tmp_path, f"echo linkgauge-far up {answer}; exec sleep 60")
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(PeerError, match="cannot be understood"):
            async with open_ssh_far_end(peer):
                pytest.fail("it cannot be up")


async def test_leaving_in_the_middle_of_a_login_leaves_nothing(tmp_path: Path) -> None:
    """As when the user gives up: the waiting program is ended."""
    begun = tmp_path / "begun"
    peer = carrier(tmp_path, f"echo > {shlex.quote(str(begun))}; exec sleep 60")

    async def log_in() -> None:
        async with open_ssh_far_end(peer):
            pytest.fail("it cannot be up")

    async with asyncio.timeout(DEADLINE_S):
        task = asyncio.create_task(log_in())
        await until(begun.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(
    "says",
    [
        "echo linkgauge-far python $(printf %05000d 0)",
        "echo linkgauge-far broken $(printf %05000d 0)",
        """echo linkgauge-far up '{"problem":"'$(printf %03000d 0)'"}'""",
        "printf %09000d 0 >&2; exit 255",
    ],
    ids=["its Python", "what Python prints", "its problem", "its last line"],
)
async def test_a_far_end_that_says_much_is_quoted_in_a_short_line(tmp_path: Path, says: str) -> None:
    """What it says goes to the terminal, the log and, in a mesh, into the table of hosts."""
    peer = carrier(tmp_path, f"{says}; exec sleep 60")
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(PeerError) as raised:
            async with open_ssh_far_end(peer):
                pytest.fail("it cannot be up")
    assert 300 < len(str(raised.value)) < 600
