"""An endpoint as an operator runs it: the real command with key, limits and log, with or without TLS."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from linkgauge.engine.iperf3.protocol.users import hash_password
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.shared_key import Access, SharedKey

_DEADLINE_S = 60.0
LIMITS = (
    "sessions = 16\nclients_per_address = 10\nduration_s = 120\nrate_bit_s = '300G'\nhandshake_s = 5\nidle_s = 20\n"
)


class EndpointUnderTest:
    """One endpoint: its process, its address, and its key, limits and log files."""

    def __init__(
        self,
        folder: Path,
        *,
        has_tls: bool,
        bind: str = "127.0.0.1",
        limits: str = LIMITS,
        more_options: Sequence[str] = (),
        has_reader: bool = True,
        has_users: bool = False,
        link: Any = None,
    ) -> None:
        """Start it.

        Args:
            folder: Where its files are.
            has_tls: Whether it has a certificate.
            bind: The address to listen on.
            limits: The text of its file of limits.
            more_options: Further options of the command.
            has_reader: False logs to a pipe that nobody reads.
            has_users: Whether clients of iperf3 need a user name.
            link: The link at whose far end it is.
        """
        self.name = "tls" if has_tls else "plain"
        self.folder = folder
        self.key_file, self.limits_file, self.log_file = (folder / name for name in ("key", "limits.toml", "log"))
        self.key = SharedKey.generate()
        self.write_key(self.key)
        self.limits_file.write_text(limits, encoding="ascii")
        self.bind = bind
        self.port = 0
        self.link: Any = None
        self.run_log: Any = None
        self.end_detail = ""  # what the last run of a fault gave as the cause of its end
        self._namespace: Any = None
        self._has_reader = has_reader
        self.has_users = has_users
        files: list[str | Path] = ["--key-file", self.key_file, "--limits", self.limits_file]
        if has_tls:
            cert, secret = make_certificate(folder)
            files += ["--tls-cert", cert, "--tls-key", secret]
        if has_users:
            users, private_key = make_users(folder)
            files += ["--iperf3-users", users, "--iperf3-key", private_key]
        self._options = [*map(str, files), "--log-json", "--json", *more_options]
        if link is not None:
            self.link, self._namespace = link, link.far
        self.start()

    def start(self) -> None:
        """Start its process, in the far namespace of its link if it has one; on the same port as before, if any."""
        options = ["--bind", self.bind, "--port", str(self.port), *self._options]
        with self.log_file.open("wb") as log, self._namespace.enter() if self._namespace else nullcontext():
            self.process = subprocess.Popen(
                [sys.executable, "-m", "linkgauge", "endpoint", *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log if self._has_reader else subprocess.PIPE,
                env={**os.environ, "PYTHONWARNINGS": "error"},
            )
        if self.process.stdout is None:
            raise RuntimeError("the endpoint was started with a pipe")
        listening = json.loads(self.process.stdout.readline())["listening"]
        fingerprint = listening.get("tls_fingerprint")
        self.fingerprint = None if fingerprint is None else bytes.fromhex(fingerprint)
        self.port = listening["port"]
        self.iperf3_port: int | None = listening.get("iperf3", {}).get("port")

    def open_runs(self) -> int:
        """Return how many runs its log has begun and not ended."""
        events = [json.loads(line)["event"] for line in self.last_words(10**6) if line.startswith("{")]
        return events.count("run_began") - events.count("run_ended")

    @property
    def pid(self) -> int:
        """The process id of the endpoint."""
        return self.process.pid

    @property
    def peer(self) -> Peer:
        """The endpoint's address with its key and fingerprint."""
        return self.with_key(self.key)

    def with_key(self, key: SharedKey | None, fingerprint: bytes | None = None) -> Peer:
        """Return the endpoint's address with another key, or none, and perhaps another fingerprint."""
        return Peer(self.bind, self.port, Access(key, fingerprint=fingerprint or self.fingerprint))

    def write_key(self, key: SharedKey | None) -> None:
        """Write a key into the key file, or an invalid one."""
        self.key_file.touch(0o600)
        self.key_file.write_text("short" if key is None else key.reveal(), encoding="ascii")

    async def reload(self) -> list[str]:
        """Reload the files; return the endpoint's log events for limits and key."""
        seen = len(self._reloads())
        deadline = time.monotonic() + _DEADLINE_S
        self.process.send_signal(signal.SIGHUP)
        while len(events := self._reloads()) < seen + 2:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no reload within {_DEADLINE_S:g} s; its log ends with {self.last_words()}")
            await asyncio.sleep(0.05)
        return events[seen:]

    @contextmanager
    def few_descriptors(self, count: int) -> Generator[None]:
        """Limit its descriptors for a `with` block."""
        before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (count, before[1]))
        try:
            yield
        finally:
            resource.prlimit(self.pid, resource.RLIMIT_NOFILE, before)

    def last_words(self, count: int = 5) -> list[str]:
        """Return the last lines of its log."""
        return self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]

    def close(self) -> list[str]:
        """End it, and return the lines on stderr that are no log entries: tracebacks and warnings."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(timeout=_DEADLINE_S)  # not communicate: it would read what nobody reads
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return [f"it did not end within {_DEADLINE_S:g} s of SIGTERM"]
        finally:
            for pipe in (self.process.stdout, self.process.stderr):
                if pipe is not None:
                    pipe.close()
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if not line.startswith("{")]

    def _reloads(self) -> list[str]:
        """Return its log events for limits and key, not those for a certificate, which only one with TLS has."""
        lines = (line for line in self.last_words(10**6) if "reloaded" in line and "certificate" not in line)
        return [json.loads(line)["event"] for line in lines]


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate and its private key in a folder; return their files."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    files = ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=soak"]
    subprocess.run([*request, *files], check=True, capture_output=True, timeout=_DEADLINE_S)
    return cert, key


def make_users(folder: Path) -> tuple[Path, Path]:
    """Make a list with one user of iperf3, and the private key for its password; return their files."""
    users, key = folder / "users.csv", folder / "iperf3.key"
    request = ["openssl", "genrsa", "-out", str(key), "2048"]
    subprocess.run(request, check=True, capture_output=True, timeout=_DEADLINE_S)
    users.touch(0o600)
    users.write_text(f"mario,{hash_password('mario', 'rossi')}\n", encoding="ascii")
    key.chmod(0o600)
    return users, key


@contextmanager
def start_endpoints(link: Any, run_log: Any) -> Generator[tuple[list[EndpointUnderTest], list[str]]]:
    """Yield an endpoint without TLS and one with it, and a list that gets their stray lines when they end.

    Both are at the far end of the link; runs with them are recorded in the run log.
    """
    stray_lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        started: list[EndpointUnderTest] = []
        try:
            for name in ("plain", "tls"):
                (Path(folder) / name).mkdir()
                endpoint = EndpointUnderTest(
                    Path(folder) / name, has_tls=name == "tls", bind=link.far_address, link=link
                )
                endpoint.run_log = run_log
                started.append(endpoint)
            yield started, stray_lines
        finally:
            for endpoint in started:
                stray_lines += endpoint.close()
