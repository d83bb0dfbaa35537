"""What the end-to-end tests share: the real command, in processes of their own, and a real far end."""

import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.host.debug_log import LOG_VARIABLE
from linkgauge.engine.lab.link_lab import Lab, open_lab
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import plan_lab_link

from ..command_line import CommandResult, carry_out
from ..command_process import COMMAND, CommandProcess
from .iperf3_programs import Iperf3
from .terminal import LARGE, OpenTerminal, Terminal
from .veth_link import VethLink

DEADLINE_S = 40.0
# Commands that need no process of their own: they enter no namespace, serve nobody and set no log up.
_WITHOUT_PROCESS = {"check", "presets", "respond", "run", "runs", "sweep"}
_UNSET = ("FORCE_COLOR", "NO_COLOR", "COLUMNS")


@dataclass(frozen=True)
class Answer(CommandResult):
    """The result of a command that may have printed a document."""

    @property
    def document(self) -> Any:
        """Stdout as JSON."""
        return json.loads(self.out)


def assert_not_run(answer: CommandResult, *words: str) -> None:
    """Check the answer of a command that has no run with its peer: status 3, and one line with these words."""
    assert answer.status == 3, answer
    assert answer.out == ""
    assert len(answer.err.splitlines()) == 1, answer.err
    for word in words:
        assert word in answer.err


class CommandLine:
    """Starts `python -m linkgauge` with a data directory of its own, and reaps what it started."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in _UNSET},
            "LINKGAUGE_DATA_DIR": str(data_dir),
            "PYTHONWARNINGS": "error",
        }
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: object, within: Sequence[str] = (), **options: Any) -> subprocess.Popen[str]:
        """Start a command and go on; it is killed at the test's end if it still runs then.

        `within` is a command that starts it.
        """
        settings: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.environment,
            **options,
        }
        process = CommandProcess([*within, *COMMAND, *map(str, arguments)], text=True, **settings)
        self._started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str], deadline_s: float = DEADLINE_S) -> Answer:
        """Wait for a command's end."""
        out, err = process.communicate(timeout=deadline_s)
        answer = Answer(process.returncode, out or "", err or "")
        assert "Traceback" not in answer.err, answer.err
        return answer

    def in_process(self, *arguments: object, **options: Any) -> Answer:
        """Carry a command out in a process of its own."""
        return self.finish(self.start(*arguments, **options))

    def __call__(self, *arguments: object, **options: Any) -> Answer:
        """Carry a command out: in this process, where it can be."""
        words = tuple(map(str, arguments))
        environment = options.get("env", self.environment)
        serves = not words or (words[0] not in _WITHOUT_PROCESS and "--show-limits" not in words)
        if serves or options.keys() - {"env"} or LOG_VARIABLE in environment:
            return self.in_process(*words, **options)
        return self.here(*words, env=environment)

    def here(self, *words: str, env: Mapping[str, str] | None = None) -> Answer:
        """Carry a command out in this process."""
        environment = self.environment if env is None else env
        changed = {name: value for name, value in environment.items() if os.environ.get(name) != value}
        with pytest.MonkeyPatch.context() as patch:
            for name in os.environ.keys() - environment.keys():
                patch.delenv(name)
            result = carry_out(words, changed)
        # As a pipe that is read as text.
        return Answer(result.status, *(text.replace("\r\n", "\n") for text in (result.out, result.err)))

    def close(self) -> None:
        """End and reap everything."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            with contextlib.suppress(ValueError):  # communicate() has closed them already
                process.communicate(timeout=DEADLINE_S)


@pytest.fixture
def linkgauge(tmp_path: Path) -> Iterator[CommandLine]:
    """Give the command line."""
    command_line = CommandLine(tmp_path / "data")
    yield command_line
    command_line.close()


def _start_endpoint(linkgauge: CommandLine, *options: str) -> tuple[subprocess.Popen[str], str]:
    arguments = ("--bind", "127.0.0.1", "--port", "0", *options)
    process = linkgauge.start("endpoint", *arguments, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on 127.0.0.1:"), line
    return process, line.removeprefix("listening on ").strip()


@pytest.fixture
def start_endpoint(linkgauge: CommandLine) -> Callable[..., tuple[subprocess.Popen[str], str]]:
    """Give a function that starts a far end and returns its process and its `HOST:PORT`."""
    return partial(_start_endpoint, linkgauge)


@pytest.fixture(scope="module")
def far_end(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the `HOST:PORT` of a far end in a process of its own, which serves all tests of a module."""
    command_line = CommandLine(tmp_path_factory.mktemp("far_end"))
    yield _start_endpoint(command_line)[1]
    command_line.close()


class SilentServer:
    """A server that accepts and says what it is told to, or nothing."""

    def __init__(self, greeting: bytes = b"") -> None:
        self._greeting = greeting
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(DEADLINE_S)
        self._clients: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def wait_for_client(self) -> socket.socket:
        """Accept one client and greet it."""
        client, _address = self._listener.accept()
        client.settimeout(DEADLINE_S)
        self._clients.append(client)
        client.sendall(self._greeting)
        return client

    def close(self) -> None:
        """Hang up on everybody."""
        for client in self._clients:
            client.close()
        self._listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[bytes], SilentServer]]:
    """Give a function that starts a server with a greeting."""
    servers: list[SilentServer] = []

    def start(greeting: bytes = b"") -> SilentServer:
        servers.append(SilentServer(greeting))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def silent_server(serve: Callable[[bytes], SilentServer]) -> SilentServer:
    """Give a server that accepts and says nothing."""
    return serve(b"")


_SSHD = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
# Root's sshd wants /run/sshd: in a mount namespace of its own it has one, and the machine's /run stays as it is.
_WITH_RUN = 'mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"'


class Sshd:
    """A real OpenSSH server on loopback that lets one key in.

    Its sessions have `bin` as their whole PATH, and `home` as home, current and temporary folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.home = folder / "home"
        for each in (self.bin, self.home):
            each.mkdir()
        self.address, self.port = "127.0.0.1", 0
        self._process: subprocess.Popen[bytes] | None = None
        self._command: list[str] = []
        for name in ("host_key", "key"):
            self.make_key(name)
        shutil.copy(folder / "key.pub", folder / "authorized_keys")
        host_key = " ".join((folder / "host_key.pub").read_text().split()[:2])
        (folder / "known_hosts").write_text(f"* {host_key}\n")
        self.provide("sh", "/bin/sh")
        # The interpreter that the tests' environment is made with: it can import neither linkgauge nor uvloop.
        self.provide("python3", str(Path(sys.base_prefix, "bin", "python3")))

    @property
    def peer(self) -> str:
        """The address by which linkgauge gets there."""
        return f"ssh://{self.address}:{self.port}"

    def provide(self, name: str, program: str, *arguments: str) -> None:
        """Put a program on the sessions' PATH, with arguments that go before those it is given."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f'#!/bin/sh\nexec {shlex.join([program, *arguments])} "$@"\n')
        path.chmod(0o755)

    def make_key(self, name: str, passphrase: str = "") -> None:
        """Make a pair of keys."""
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(self.folder / name)]
        subprocess.run(command, check=True, timeout=DEADLINE_S)

    def command(self, key: str = "key", known_hosts: str = "known_hosts") -> str:
        """Return the ssh command line that gets in, and knows nothing of whoever runs the tests."""
        options = {
            "IdentityFile": self.folder / key,
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "UserKnownHostsFile": self.folder / known_hosts,
            "GlobalKnownHostsFile": "none",
        }
        words = [word for option, value in options.items() for word in ("-o", f"{option}={value}")]
        return shlex.join(["ssh", "-F", "none", *words])

    def start(
        self,
        before: str = "true",
        *,
        address: str = "127.0.0.1",
        within: Callable[[list[str]], list[str]] = list,
        **environment: str,
    ) -> None:
        """Start it; skip the test where it does not run. Sessions carry `before` out first, as a shell does.

        `within` makes the command line that starts it in another network namespace, which has the address.
        """
        self.address = address
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        settings = {
            "PATH": self.bin,
            "HOME": self.home,
            "TMPDIR": self.home,
            "LINKGAUGE_TESTS": os.environ["LINKGAUGE_TESTS"],
            **environment,
        }
        words = shlex.join(["env", *(f"{name}={value}" for name, value in settings.items())])
        lines = [
            f"ListenAddress {address}:{self.port}",
            f"HostKey {self.folder / 'host_key'}",
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}",
            # Whatever the login shell's start-up files make of PATH.
            f'ForceCommand cd {self.home}; {before}; exec {words} /bin/sh -c "$SSH_ORIGINAL_COMMAND"',
            "PidFile none",
            "StrictModes no",
            "UsePAM no",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin yes",
        ]
        configuration = self.folder / "sshd_config"
        configuration.write_text("\n".join([*lines, ""]))
        command = [_SSHD or "sshd", "-D", "-e", "-f", str(configuration)]
        if os.geteuid() == 0 and not Path("/run/sshd").is_dir():
            command = ["unshare", "--mount", "sh", "-c", _WITH_RUN, "sh", *command]
        self._command = within(command)
        self.start_again()

    def start_again(self) -> None:
        """Start it as before, after a `stop`."""
        log = self.folder / "sshd.log"
        log.unlink(missing_ok=True)
        with log.open("ab") as log_file:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file
            )
        deadline = time.monotonic() + DEADLINE_S
        while b"Server listening on" not in log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.skip(f"an OpenSSH server does not run here: {log.read_text()[-300:]}")
            time.sleep(0.02)

    def processes(self) -> set[int]:
        """Return the processes that its sessions have started: they have its PATH."""
        found: set[int] = set()
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"PATH={self.bin}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.add(int(folder.name))
        return found

    def wait_until_gone(self, since: float | None = None) -> float:
        """Wait until nothing that a session has started is there any more; print and return how long that took."""
        began = time.monotonic() if since is None else since
        while left := self.processes():
            assert time.monotonic() < began + DEADLINE_S, f"left behind: {left}"
            time.sleep(0.02)
        took_s = time.monotonic() - began
        sys.stdout.write(f"the far end was gone after {took_s:.2f} s\n")
        return took_s

    def stop(self) -> None:
        """End it. Sessions that go on have processes of their own."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=DEADLINE_S)


@pytest.fixture
def sshd(tmp_path: Path, linkgauge: CommandLine) -> Iterator[Sshd]:
    """Give an OpenSSH server that is not started yet, and have linkgauge's ssh know it."""
    if _SSHD is None or not all(map(shutil.which, ("ssh", "ssh-keygen", "unshare"))):
        pytest.skip("ssh, ssh-keygen, unshare and sshd are needed (Debian: openssh-server, util-linux)")
    folder = tmp_path / "ssh"
    folder.mkdir()
    server = Sshd(folder)
    linkgauge.environment["LINKGAUGE_SSH_COMMAND"] = server.command()
    yield server
    server.stop()


@pytest.fixture
def iperf3() -> Iterator[Iperf3]:
    """Give the stock iperf3 of this machine; skip the test where there is none."""
    programs = Iperf3()
    yield programs
    programs.close()


@pytest.fixture
def link() -> Iterator[VethLink]:
    """Give a link between two namespaces, with link-local addresses."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
        pytest.skip("network namespaces are made as root, with unshare, nsenter and iproute2")
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this system has no IPv6")
    made = VethLink()
    yield made
    made.close()


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Give a link of 10 Mb/s between two namespaces; skip where this machine cannot have one."""
    with contextlib.ExitStack() as stack:
        try:
            slow_link = stack.enter_context(open_lab(plan_lab_link(load_catalog().find("10mb-fd"))))
        except LabUnavailable as error:
            pytest.skip(str(error))
        yield slow_link


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give a home for the person, and the working directory."""
    home = tmp_path / "home"
    home.mkdir()
    return home


@pytest.fixture
def terminal(linkgauge: Any, home: Path) -> Iterator[OpenTerminal]:
    """Give a function that opens the app in a terminal of its own."""
    opened: list[Terminal] = []

    def start(
        *arguments: str, size: tuple[int, int] = LARGE, within: Sequence[str] = (), **environment: str
    ) -> Terminal:
        inherited = {k: v for k, v in linkgauge.environment.items() if k not in {"LINES", "COLORTERM", "TERM"}}
        settings = {"HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8", **environment}
        opened.append(Terminal(list(arguments), size, inherited | settings, home, within))
        return opened[-1]

    yield start
    for descriptor in opened:
        descriptor.close()
