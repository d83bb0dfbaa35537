"""Child processes that end with their standard input."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from linkgauge.engine.host import child_process
from linkgauge.engine.host.child_process import TetheredChild
from linkgauge.engine.model.errors import WorkerError

from ...mesh.host_processes import descendants, is_alive, until

ECHO = "import sys\nfor line in sys.stdin:\n    print(repr(line), flush=True)\n"
DEAF = "import signal, time\nprint('ready', flush=True)\nwhile True:\n    time.sleep(60)\n"
TALKER = "import sys\nsys.stdin.readline()\nsys.stdout.write('x' * 300_000)\n"


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put three small modules where a child finds them."""
    for name, text in (("echo_child", ECHO), ("deaf_child", DEAF), ("talking_child", TALKER)):
        (tmp_path / f"{name}.py").write_text(text, encoding="ascii")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


async def test_a_child_gets_its_first_line_and_further_ones_and_ends_with_its_input() -> None:
    """Its status is 0 for every caller."""
    child = await TetheredChild.start("echo_child", [], "the first")
    assert await child.read_line(10.0) == "'the first\\n'\n"
    assert child.write_line()
    assert await child.read_line(10.0) == "'\\n'\n"
    assert await asyncio.gather(child.end(), child.end()) == [0, 0]
    assert not child.write_line()
    assert not is_alive(child.pid)


async def test_a_child_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had its time."""
    monkeypatch.setattr(child_process, "_END_DEADLINE_S", 0.1)
    child = await TetheredChild.start("deaf_child", [], "")
    assert await child.read_line(10.0) == "ready\n"
    assert await child.end() == -signal.SIGKILL
    assert not is_alive(child.pid)


async def test_a_child_that_has_been_killed_takes_no_line_and_has_no_more_output() -> None:
    """Its status names the signal."""
    child = await TetheredChild.start("echo_child", [], "")
    assert await child.read_line(10.0)
    os.kill(child.pid, signal.SIGKILL)
    assert await child.wait() == -signal.SIGKILL
    assert not child.write_line()
    assert await child.read_line(10.0) is None
    assert await child.end() == -signal.SIGKILL


@pytest.mark.parametrize("limit", [300_000, 299_999])
async def test_all_output_is_read_up_to_a_limit(limit: int) -> None:
    """The rest is thrown away, and the child ends."""
    child = await TetheredChild.start("talking_child", [], "")
    output = await child.read_all(limit)
    assert output == ("x" * 300_000 if limit == 300_000 else None)
    assert await child.end() == 0


async def test_a_child_that_is_not_read_ends_nevertheless() -> None:
    """More than a pipe takes waits for a reader."""
    child = await TetheredChild.start("talking_child", [], "")
    assert await child.end() == 0


async def test_a_cancelled_caller_leaves_no_child_behind() -> None:
    """The end is waited for, and then the cancellation follows."""
    child = await TetheredChild.start("echo_child", [], "")
    ending = asyncio.create_task(child.end())
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert not is_alive(child.pid)


async def test_a_start_that_is_cancelled_leaves_no_child_behind() -> None:
    """The child that may have been started has no input."""
    before = descendants(os.getpid())
    starting = asyncio.create_task(TetheredChild.start("echo_child", [], ""))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await until(lambda: not any(is_alive(pid) for pid in descendants(os.getpid()) - before))


async def test_a_child_that_cannot_start_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So is a first line that no pipe takes."""
    with pytest.raises(WorkerError, match="65537 bytes"):
        await TetheredChild.start("echo_child", [], "x" * 65_536)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(WorkerError, match="the echo does not start: no such file"):
        await TetheredChild.start("echo_child", [], "", "the echo")
