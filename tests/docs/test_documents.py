"""README and docs: every command in them is carried out, and every link leads somewhere.

A fence of `sh` has a command on each line, a fence of `console` after each `$`. They run in a folder of their own,
with an endpoint and an ssh server in the place of db-02; a duration is added where the document leaves it out.
"""

import contextlib
import os
import re
import select
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyte
import pytest
import trustme
from linkgauge.engine.iperf3.protocol.users import hash_password
from linkgauge.engine.model.errors import LabUnavailable

from ..end_to_end.conftest import CommandLine, Sshd, linkgauge, sshd  # noqa: F401 (fixtures)
from ..engine.rsa_keys import private_pem, server_key
from ..engine.speed_servers import served

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "packaging" / "README.md"]
DEADLINE_S = 150.0
pytestmark = pytest.mark.timeout(200)  # beside five other tests a mesh of four emulated hosts took over a minute
LANGUAGES = {"sh", "console", "text", "toml", "json", "csv"}

# What a machine for tests cannot carry out, by words of the command, and why.
SKIPPED = {
    "pip install": "tests/packaging installs the packages",
    "/etc/": "changes the machine",
    "systemctl ": "needs systemd as process 1",
    "linkgauge mesh db-": "tests/mesh/test_coordinator.py has hosts",
    "linkgauge mesh --hosts": "tests/mesh/test_coordinator.py has hosts",
    "linkgauge mesh --scheduler": "tests/mesh/test_coordinator.py has hosts",
    "linkgauge mesh --resume": "tests/tui/cli/commands/test_mesh.py resumes one",
    "dask ": "serves until it is stopped",
    "make ": "works in a clone, and takes long; tests/stress/test_grid.py has a grid",
    "podman ": "tests/packaging builds the image where a container engine is there",
}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WATCH = """
[watch]
name = "office"
[[peer]]
name = "db-01"
address = "{peer}"
seconds = 0.5
"""
_FOREIGN_PEER = r"(librespeed|ndt7|iperf3)://db-02"
_SPEED_PEER = r"(librespeed|ndt7)://db-02(?::\d+)?(?:/\w+)?"
LINK = re.compile(r"\[[^]]*\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
LOGIN = "import fcntl,os,sys,termios;fcntl.ioctl(0,termios.TIOCSCTTY,0);os.execvp(sys.argv[1],sys.argv[1:])"


def commands_of(document: Path) -> Iterator[str]:
    """Yield the commands of a document."""
    for language, body in FENCE.findall(document.read_text(encoding="utf-8")):
        lines = [line for line in body.splitlines() if line and not line.startswith("#")]
        if language == "sh":
            yield from lines
        elif language == "console":
            yield from (line.removeprefix("$ ") for line in lines if line.startswith("$ "))


def cases() -> Iterator[Any]:
    """Yield every command of the documents; those of docs/ are for --every."""
    seen: set[str] = set()
    for document in DOCUMENTS:
        for command in commands_of(document):
            if command not in seen:
                seen.add(command)
                # A command may need what one before it has made: a draw takes a whole document.
                marks = () if document.parent == ROOT else pytest.mark.every(group=document.stem)
                yield pytest.param(command, marks=marks, id=f"{document.stem}: {command}".replace("::", ":"))


def needs_terminal(command: str) -> bool:
    """Return whether a command opens the app, or an endpoint's screen."""
    words = shlex.split(command)
    if words[:2] == ["linkgauge", "lab"]:
        return "--check" not in words and "--shell" not in words
    return words[0] == "linkgauge" and (
        len(words) == 1 or words[1] in {"db-02", "app"} or {"--ui", "replay"} & {*words}
    )


def with_duration(command: str) -> str:
    """Return the command with a short duration, where it measures and names none."""
    words = command.split()
    program = words.index("linkgauge") if "linkgauge" in words else -1
    verb = next((word for word in words[program + 1 :] if not word.startswith("-")), "") if program >= 0 else ""
    has_end = {"--seconds", "--until-ci", "--bytes", "--help", "--resume"} & set(words)
    if verb == "lab":
        return (
            command
            if " -- " in command and has_end
            else f"{command}{'' if ' -- ' in command else ' --'} --seconds 1"
        )
    if verb == "respond" and "--direction" not in words:
        return f"{command} --direction in"  # one load, not three in turn
    if verb == "watch":
        return f"{command}{'' if '--once' in words else ' --once'}{'' if has_end else ' --seconds 0.5'}"
    if verb not in {"check", "run", "sweep"} or has_end:
        return command
    seconds = "1.5" if "-i" in words else "0.5"  # an interval is shorter than its test
    return f"{command} --seconds {seconds}"


@dataclass
class Machine:
    """A folder, a data directory with two runs and a sweep, and a peer in the place of db-02."""

    folder: Path
    command_line: CommandLine
    peer: str
    names: dict[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of its commands."""
        return self.command_line.environment

    def spell(self, command: str) -> str:
        """Return a command with this machine's names in the place of the document's; save runs if it names one."""
        if {"runs", "ID", "GROUP"} & set(command.split()) and "ID" not in self.names:
            brief = ("--seconds", "0.5", "--json")
            ids = [self.command_line("run", self.peer, *brief).document["run_id"] for _ in range(2)]
            group = self.command_line("sweep", self.peer, "--sessions", "1,2", *brief).document["group"]
            self.names |= {"ID": ids[0], "ID2": ids[1], "GROUP": group}
        if "check our-backbone" in command:  # the preset of the command before it, perhaps in another process
            self.carry_out(self.spell("linkgauge presets new our-backbone --from-run ID"))
        for name, value in self.names.items():
            command = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", value, command)
        return command

    def carry_out(self, command: str) -> subprocess.CompletedProcess[str]:
        """Carry a command out in a shell."""
        return subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.folder, env=self.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip

    def open(self, command: str) -> None:
        """Open the app or an endpoint's screen in a terminal, and quit it."""
        ours, theirs = os.openpty()
        screen = pyte.Screen(120, 40)
        stream = pyte.ByteStream(screen)
        arguments = [sys.executable, "-ISc", LOGIN, "/bin/sh", "-c", f"stty rows 40 columns 120; exec {command}"]
        with subprocess.Popen(
            arguments, stdin=theirs, stdout=theirs, stderr=theirs, cwd=self.folder, env=self.environment,
            start_new_session=True,
        ) as process:  # fmt: skip
            os.close(theirs)
            try:
                self._quit(process, ours, screen, stream)
            finally:
                process.kill()
        os.close(ours)
        assert process.returncode == 0, "\n".join(screen.display)

    def _quit(
        self, process: subprocess.Popen[bytes], terminal: int, screen: pyte.Screen, stream: pyte.ByteStream
    ) -> None:
        """Press q whenever the screen has come to rest, until the program has ended."""
        deadline = time.monotonic() + DEADLINE_S
        while process.poll() is None:
            text = "\n".join(screen.display)
            assert time.monotonic() < deadline, text
            has_output = select.select([terminal], [], [], 0.4)[0]  # an endpoint's screen changes each second
            with contextlib.suppress(OSError):  # the program has gone
                if has_output:
                    stream.feed(os.read(terminal, 65_536))
                elif text.strip():
                    os.write(terminal, b"q")

    def serve(self, command: str, announcement: str) -> None:
        """Start a server, and stop it once its first line announces where it is."""
        with subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            line = process.stdout.readline()
            process.terminate()
            _, err = process.communicate(timeout=DEADLINE_S)
        assert announcement in line, err
        assert process.returncode == 0, err

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Carry out the watch of office.toml, as a service would."""
        (self.folder / "office.toml").write_text(WATCH.format(peer=self.peer))
        with subprocess.Popen(
            shlex.split("linkgauge watch office.toml --headless"),
            executable=shutil.which("linkgauge", path=self.environment["PATH"]),
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            try:
                assert any("watching" in line for line in process.stdout)
                yield
            finally:
                process.terminate()
                process.communicate(timeout=DEADLINE_S)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Give the place where the documents' commands are carried out."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "bin").mkdir()
    program = folder / "bin" / "linkgauge"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m linkgauge "$@"\n')
    program.chmod(0o755)
    (folder / "key").write_text("0123456789abcdef0123456789abcdef\n")
    (folder / "iperf3.key").write_bytes(private_pem(server_key()))
    (folder / "users.csv").write_text(f"mario,{hash_password('mario', 'rossi')}\n")
    for name in ("key", "iperf3.key", "users.csv"):
        (folder / name).chmod(0o600)
    (folder / "limits.toml").write_text("clients = 16\n")
    certificate = trustme.CA().issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "key.pem").chmod(0o600)
    command_line = CommandLine(folder / "data")
    command_line.environment |= {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "LINKGAUGE_CONFIG_DIR": str(folder / "config"),
        "HOME": str(folder),
        "TERM": "xterm-256color",
    }
    try:
        process = command_line.start("endpoint", "--bind", "127.0.0.1", "--port", "0", stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        peer = process.stdout.readline().split()[-1]
        yield Machine(folder, command_line, peer, {"db-02": peer, "192.0.2.10": "127.0.0.1"})
    finally:
        command_line.close()


@pytest.mark.parametrize("command", cases())
def test_a_command_of_the_documents_works(machine: Machine, command: str, request: pytest.FixtureRequest) -> None:
    """It ends with 0, or with 1 where a check judges the link; screens and servers open, and can be quit."""
    for words, reason in SKIPPED.items():
        if words in command:
            pytest.skip(reason)
    if "ssh://me@db-02" in command:
        server: Sshd = request.getfixturevalue("sshd")
        server.start()
        machine.environment["LINKGAUGE_SSH_COMMAND"] = server.command()
        command = command.replace("ssh://me@db-02", server.peer)
    if re.search(_FOREIGN_PEER, command):
        (carry_out_with_iperf3 if "iperf3://" in command else carry_out_with_speed_server)(machine, command)
        return
    if "--tls-fingerprint" in command or ("--key-file key" in command and "endpoint" not in command):
        carry_out_with_endpoint(machine, command)
        return
    command = machine.spell(command) if not needs_terminal(command) else command
    if "--follow" in command:
        follow(machine, command)
    elif needs_terminal(command):
        with free_port(command) as complete:
            machine.open(machine.spell(complete))
    elif "linkgauge endpoint" in command and not any(word in command for word in ("--show-limits", "endpoint key")):
        with free_port(command) as complete:
            machine.serve(complete, "listening on")
    else:
        done = machine.carry_out(with_duration(command))
        if "linkgauge lab" in command and done.returncode == 3 and str(LabUnavailable.__name__):
            pytest.skip(done.stderr)
        may_be_short = any(word in command for word in (" check", "--check", "linkgauge mesh"))
        assert done.returncode in ({0, 1} if may_be_short else {0}), done
        assert "Traceback" not in done.stderr


def follow(machine: Machine, command: str) -> None:
    """Show a watch that another process carries out, in a terminal or on a page."""
    with machine.watch():
        if " web " in command:
            machine.serve(command, "open http://")
        else:
            machine.open(command)


def carry_out_with_speed_server(machine: Machine, command: str) -> None:
    """Carry a command out against a small server of LibreSpeed and NDT7."""
    with served() as server:

        def place(found: re.Match[str]) -> str:
            return f"{found[1]}://127.0.0.1:{server.port}{'/speed' if found[1] == 'librespeed' else ''}"

        done = machine.carry_out(with_duration(re.sub(_SPEED_PEER, place, command)))
    assert done.returncode in {0, 1}, done


def carry_out_with_iperf3(machine: Machine, command: str) -> None:
    """Carry a command out against an iperf3 server on a free port."""
    program = shutil.which("iperf3")
    if program is None:
        pytest.skip("no iperf3 here")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    arguments = [program, "-s", "-B", "127.0.0.1", "-p", str(port), "--forceflush"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            assert any("listening" in line for line in process.stdout)
            done = machine.carry_out(with_duration(command.replace("iperf3://db-02", f"iperf3://127.0.0.1:{port}")))
            assert done.returncode in ({0, 1} if " check" in command else {0}), done
            assert "Traceback" not in done.stderr
        finally:
            process.terminate()


@contextlib.contextmanager
def free_port(command: str) -> Iterator[str]:
    """Yield the command, for an endpoint with a free port in the place of the document's."""
    if "linkgauge endpoint" in command:
        command = re.sub(r"--iperf3( \d+)?(?= |$)", "--iperf3 0", re.sub(r" --port \d+", "", command)) + " --port 0"
    yield command


def carry_out_with_endpoint(machine: Machine, command: str) -> None:
    """Carry a command out against an endpoint with the key, or with the certificate, of the folder."""
    options = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"] if "--tls" in command else []
    with subprocess.Popen(
        [*shlex.split("linkgauge endpoint --bind 127.0.0.1 --port 0 --key-file key --json"), *options],
        executable=shutil.which("linkgauge", path=machine.environment["PATH"]),
        cwd=machine.folder, env=machine.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            address = re.search(r"127\.0\.0\.1[^\d]+(\d+)", line)
            fingerprint = re.search(r"[0-9A-Fa-f:]{64,95}", line)
            assert address, line
            spelled = command.replace("db-02", f"127.0.0.1:{address[1]}")
            if fingerprint:
                spelled = spelled.replace("3A:5C:...", fingerprint[0])
            if "--key-file" not in spelled:
                spelled += " --key-file key"
            done = machine.carry_out(with_duration(spelled))
            assert done.returncode == 0, done
        finally:
            process.terminate()


def test_every_link_of_a_document_leads_somewhere() -> None:
    """Files and headings; addresses elsewhere are left to their readers."""
    for document in DOCUMENTS:
        for target, heading in LINK.findall(document.read_text(encoding="utf-8")):
            if "://" in target:
                continue
            path = document.parent / target if target else document
            assert path.exists(), target
            if heading:
                titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_fence_names_its_language() -> None:
    """So that no command escapes these tests."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert {language for language, _ in FENCE.findall(text)} <= LANGUAGES
        assert not re.search(r"^    \S", FENCE.sub("", text), re.MULTILINE)


def test_the_documents_list_every_finding() -> None:
    """A code of `why` is explained once."""
    from typing import get_args

    from linkgauge.presets.diagnosis.finding import FindingCode

    table = (ROOT / "docs" / "measuring.md").read_text(encoding="utf-8")
    assert [code for code in get_args(FindingCode) if f"`{code}`" not in table] == []


def test_the_documents_have_the_template_of_the_settings() -> None:
    """As `linkgauge settings --template` prints it."""
    from linkgauge.tui.kit.key_map import keys_template
    from linkgauge.tui.session.settings_file import settings_template

    assert f"```toml\n{settings_template()}\n{keys_template()}```" in (ROOT / "docs" / "settings.md").read_text(
        encoding="utf-8"
    )


def test_the_readme_lists_every_key_of_the_app() -> None:
    """By the first name of each."""
    from linkgauge.tui.kit.actions import ACTIONS, ScreenKind

    table = (
        (ROOT / "README.md").read_text(encoding="utf-8").partition("## Keys of the app")[2].partition("\n## ")[0]
    )
    names = set(re.findall(r"`(\S+?)`", table))
    first = {action.key_names.split()[0] for action in ACTIONS if ScreenKind.COCKPIT in action.screens}
    assert first - names == set()


def test_every_test_that_the_security_page_names_exists() -> None:
    """A row without its test is a promise."""
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert named - set(re.findall(r"def (test_\w+)", sources)) == set()
    for path in re.findall(r"`(tests/[\w/.]+)`", page):
        assert (ROOT / path).exists(), path
