"""Commands without memory, threads or processes: one line, status 3, and no hang."""

import asyncio
import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

LINE = "linkgauge: out of memory, threads or processes: raise ulimit -d, -v, -u, or the limits of the service"
DEADLINE_S = 60.0
COMMANDS = {
    "check": ("check", "loopback", "--seconds", "1"),
    "endpoint": ("endpoint", "--bind", "127.0.0.1", "--port", "0"),
    "mesh": ("mesh", "--local", "2", "--seconds", "1", "--headless"),
    "watch": ("watch", "loopback", "--once", "--seconds", "1", "--headless"),
    "ssh": ("check", "ssh://localhost", "--seconds", "1"),
    "app": (),
}
pytestmark = pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit limits a command (util-linux)")


def limited(*options: str, name: str) -> list[str]:
    """Return the command line of a limited command."""
    return ["prlimit", *options, sys.executable, "-P", "-m", "linkgauge", *COMMANDS[name]]


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a command with folders of its own."""
    home = folder / "own"
    return {
        **os.environ,
        "TERM": "xterm",
        **{f"LINKGAUGE_{name}_DIR": str(home / name) for name in ("DATA", "CONFIG", "CACHE")},
    }


@pytest.mark.parametrize(
    ("mib", "name"),
    [
        (25, "check"),
        *(pytest.param(mib, name, marks=pytest.mark.every) for mib in (15, 20, 30) for name in ("check", "app")),
        *(
            pytest.param(mib, name, marks=pytest.mark.every)
            for mib in (15, 20, 25)
            for name in ("endpoint", "mesh")
        ),
    ],
)
def test_a_command_without_memory_says_so_in_one_line(tmp_path: Path, mib: int, name: str) -> None:
    """Wherever Python notices it: in an import, at a thread, in a library (RLIMIT_DATA)."""
    command = limited(f"--data={mib << 20}", name=name)
    status, output = on_terminal(command, environment(tmp_path))
    assert "Traceback" not in output
    assert status == 3, output
    assert output.splitlines()[-1].strip() == LINE or "cannot allocate memory: raise ulimit -d and -v" in output


as_another_user = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("setpriv", "unshare"))),
    reason="another user is made as root, who has as many processes as it likes (RLIMIT_NPROC)",
)
# Python may be in root's home. A capability to read it anyway would not hold in the namespaces of a lab.
OPEN_ROOTS_HOME = """
set -e
python=$1
shift
case $python in /root/*)
    mount --bind /root "$TMPDIR"
    mount -t tmpfs -o mode=755 none /root
    top=/root/$(echo "${python#/root/}" | cut -d / -f 1)
    mkdir "$top"
    mount --bind "$TMPDIR/${top#/root/}" "$top"
    umount "$TMPDIR"
esac
exec "$@"
"""


@pytest.fixture
def others_folder() -> Iterator[Path]:
    """Give a folder that another user reaches: those of pytest are its own user's alone."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def of_another_user(folder: Path, tasks: int, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of a command of a user with so many threads and processes."""
    for name in ("own", "temporary", "mount"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name).chmod(0o777)
    drop = [f"--{which}=-all" for which in ("inh-caps", "ambient-caps", "bounding-set")]
    uid = 40_000 + os.getpid() % 10_000
    return [
        *("unshare", "--mount", "sh", "-c", OPEN_ROOTS_HOME, "sh", os.path.realpath(sys.executable)),
        *("setpriv", f"--reuid={uid}", "--clear-groups", *drop, "prlimit", f"--nproc={tasks}"),
        *("env", f"TMPDIR={folder / 'temporary'}", f"HOME={folder / 'own'}"),
        *(sys.executable, "-P", "-m", "linkgauge", *arguments),
    ], environment(folder) | {"TMPDIR": str(folder / "mount")}


@as_another_user
@pytest.mark.parametrize(
    ("tasks", "name"),
    [
        (2, "check"),
        *(pytest.param(tasks, "check", marks=pytest.mark.every) for tasks in (1, 4, 6, 7, 9)),
        *(pytest.param(tasks, "mesh", marks=pytest.mark.every) for tasks in (1, 2, 4, 6, 9, 14, 18, 20)),
        *(pytest.param(tasks, "watch", marks=pytest.mark.every) for tasks in (1, 2, 3)),
        pytest.param(1, "ssh", marks=pytest.mark.every),
        *(pytest.param(tasks, "app", marks=pytest.mark.every) for tasks in (1, 2)),
        pytest.param(1, "endpoint", marks=pytest.mark.every),
    ],
)
def test_a_command_of_a_user_without_processes_says_so_and_ends(others_folder: Path, tasks: int, name: str) -> None:
    """Whatever it starts finds no process or thread: a worker, the tools of a lab, Dask, ssh."""
    command, variables = of_another_user(others_folder, tasks, *COMMANDS[name])
    status, output = on_terminal(command, variables)
    assert "Traceback" not in output, output
    assert status == 3, output
    words = " ".join(output.split())
    assert "ulimit -u" in words or LINE.partition(" ")[2] in words, output


@as_another_user
def test_a_watch_of_a_user_without_threads_goes_on_and_says_so(others_folder: Path) -> None:
    """A test has no result without the threads and workers that it needs, and the journal's events wait for one.

    An endpoint answers: without one a test ends before it needs any of them.
    """
    server = subprocess.Popen(
        [sys.executable, "-m", "linkgauge", *COMMANDS["endpoint"]],
        env=environment(others_folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    peer = server.stdout.readline().split()[-1]
    words = ("watch", peer, "--headless", "--every", "1s", "--probe-every", "none", "--seconds", "0.5")
    command, variables = of_another_user(others_folder, 4, *words)
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if sum("test begins" in each for each in lines) == 2:
                process.terminate()
        assert process.wait(DEADLINE_S) == 128 + signal.SIGTERM, lines
    finally:
        for each in (process, server):
            each.kill()
            each.communicate()
    said = "".join(lines)
    assert "Traceback" not in said
    assert "no thread can be started: raise ulimit -u" in said, said


@as_another_user
def test_a_client_of_an_endpoint_without_processes_hears_so_and_the_next_one_is_served(others_folder: Path) -> None:
    """A stream needs a worker process. UDP would have threads for the kernel's counters as well, which may lack."""
    command, variables = of_another_user(others_folder, 8, *COMMANDS["endpoint"], "--open")
    user = next(word for word in command if word.startswith("--reuid="))
    others: subprocess.Popen[str] | None = None
    with (others_folder / "log").open("w") as log:
        server = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        assert server.stdout is not None
        peer = server.stdout.readline().split()[-1]
        busy = 'for i in 1 2 3 4 5 6 7 8; do sleep 60 & all="$all $!"; done; echo; read line; kill $all; wait'
        occupy = ["setpriv", user, "--clear-groups", "sh", "-c", busy]
        others = subprocess.Popen(occupy, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", text=True)
        assert others.stdout is not None
        others.stdout.readline()
        for workload in ("stream", "udp"):
            done = ask(peer, workload, environment(others_folder))
            assert done.returncode == 3, done
            assert "no worker process could be started: resource temporarily unavailable" in done.stderr
            assert "raise ulimit -u" in done.stderr
        others.communicate("\n", timeout=DEADLINE_S)
        for workload in ("udp", "stream"):
            done = ask(peer, workload, environment(others_folder))
            assert done.returncode == 0, done
    finally:
        for each in filter(None, (others, server)):
            each.terminate()
            each.communicate(timeout=DEADLINE_S)
    said = (others_folder / "log").read_text()
    assert "Traceback" not in said, said
    assert "raise ulimit -u" in said


def ask(peer: str, workload: str, variables: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    """Carry a short test with an endpoint out."""
    words = ("run", peer, "--workload", workload, "--seconds", "0.5", "--rate", "10M")
    command = [sys.executable, "-P", "-m", "linkgauge", *words]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


@as_another_user
async def test_a_page_without_a_process_for_its_app_ends_and_the_server_goes_on(others_folder: Path) -> None:
    """The server's terminal has the reason; a page that is opened later has its app."""
    aiohttp = pytest.importorskip("aiohttp", reason="the extra linkgauge[web] is not installed")
    command, variables = of_another_user(others_folder, 1, "web", "--port", "0")
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, env=variables, stdout=pipe, stderr=pipe)
    assert server.stdout is not None
    assert server.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE_S), aiohttp.ClientSession() as client:
            address = (await server.stdout.readline()).decode().split()[-1]
            page = await client.ws_connect(f"{address}ws", origin=address.rpartition("/")[0].rpartition("/")[0])
            assert (await page.receive()).type is aiohttp.WSMsgType.CLOSE
            said = (await server.stderr.readline()).decode()
            assert said.endswith("the app has not started: resource temporarily unavailable: raise ulimit -u\n"), (
                said
            )
            async with client.get(address) as answer:
                assert answer.status == 200
    finally:
        server.terminate()
        await server.communicate()


def on_terminal(command: list[str], variables: dict[str, str]) -> tuple[int, str]:
    """Carry a command out on a terminal of its own; return its status and all that it has shown there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    try:
        while more := os.read(ours, 65_536):
            shown += more
    except OSError:  # nobody is left inside
        pass
    finally:
        os.close(ours)
    return process.wait(DEADLINE_S), shown.decode(errors="replace")
