"""A client that names somebody else's port: the whole product, with a rogue local end."""

import os
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from .conftest import DEADLINE_S

# Loaded by every process; in the local end's worker the listener claims to be at the victim's port.
_ROGUE = """
import os, socket
from linkgauge.engine.workloads import crr_handshake

class Rogue(socket.socket):
    def getsockname(self):
        return ("127.0.0.1", int(os.environ["VICTIM_PORT"]))

def open_rogue(sock, open_listener=crr_handshake.open_listener):
    return Rogue(fileno=open_listener(sock).detach())

crr_handshake.open_listener = open_rogue
"""


class Victim:
    """A server of somebody else that reads all that it gets."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self.connections = self.received = 0
        self.port = self._listener.getsockname()[1]

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with sock:
                sock.settimeout(DEADLINE_S)
                while data := sock.recv(65_536):
                    self.received += len(data)

    def close(self) -> None:
        """Stop serving; the port is closed then."""
        if self._listener.fileno() >= 0:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._thread.join(DEADLINE_S)
            self._listener.close()


@pytest.mark.every  # each run lasts as long as the deadline
def test_a_rogue_client_reaches_no_port_and_learns_nothing(tmp_path: Path) -> None:
    """An open port gets a connection without a byte, a closed one none; the errors are the same."""
    (tmp_path / "sitecustomize.py").write_text(_ROGUE, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    victim = Victim()
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "LINKGAUGE_DATA_DIR": str(tmp_path / "data"),
        "VICTIM_PORT": str(victim.port),
    }
    options = ["--workload", "crr", "--direction", "in", "--request", "16M", "--seconds", "1"]
    texts: set[str] = set()
    try:
        for _ in ("open", "closed"):
            done = subprocess.run(
                [sys.executable, "-P", "-m", "linkgauge", "run", "loopback", *options],
                capture_output=True,
                text=True,
                timeout=DEADLINE_S,
                env=environment,
                check=False,
            )
            assert done.returncode == 3, done.stderr
            assert f"cannot connect to 127.0.0.1 port {victim.port}" in done.stderr
            texts.add(re.sub(r"no data connection to 127\.0\.0\.1:\d+", "", done.stderr))
            victim.close()
    finally:
        victim.close()
    assert (victim.connections, victim.received) == (1, 0)
    assert len(texts) == 1
