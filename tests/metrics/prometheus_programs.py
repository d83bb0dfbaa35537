"""The real Prometheus, promtool and Pushgateway of this host. Tests that need a missing one skip."""

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DEADLINE_S = 40.0
_CONFIG = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
{jobs}
"""


def find_program(name: str) -> str:
    """Return the path of a program, or skip."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: prometheus, prometheus-pushgateway)")
    return found


def fetch(url: str) -> bytes:
    """Return the answer of an address."""
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:  # noqa: S310 - of a program started here
        return bytes(answer.read())


class Prometheus:
    """A Prometheus that scrapes; `query` asks it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> dict[str, Any]:
        """Return the answer to an instant query; raise HTTPError for wrong PromQL."""
        answer = json.loads(fetch(f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"))
        return dict(answer["data"])

    def wait_for(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Return the labels and values of a query once it has any."""
        deadline = time.monotonic() + DEADLINE_S
        while not (found := self.query(expression)["result"]):
            assert time.monotonic() < deadline, expression
            time.sleep(0.1)
        return [(each["metric"], float(each["value"][1])) for each in found]


@contextmanager
def run_server(command: Sequence[str], url: str) -> Generator[None]:
    """Run a program until the block ends; begin once it answers at an address."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + DEADLINE_S
            while True:
                assert process.poll() is None
                assert time.monotonic() < deadline
                try:
                    fetch(url)
                except OSError:
                    time.sleep(0.05)
                else:
                    break
            yield
        finally:
            process.terminate()
            process.wait(DEADLINE_S)


@contextmanager
def run_prometheus(folder: Path, targets: dict[str, str]) -> Generator[Prometheus]:
    """Run a Prometheus that scrapes these addresses, by the names of their jobs, each 200 ms."""
    program, port = find_program("prometheus"), free_port()
    jobs = "\n".join(
        f"- {{job_name: {job}, static_configs: [{{targets: ['{urllib.parse.urlsplit(url).netloc}']}}]}}"
        for job, url in targets.items()
    )
    config = folder / "prometheus.yml"
    config.write_text(_CONFIG.format(jobs=jobs))
    url = f"http://127.0.0.1:{port}"
    where = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    with run_server([program, *where, f"--web.listen-address=127.0.0.1:{port}"], f"{url}/-/ready"):
        yield Prometheus(url)


@contextmanager
def run_pushgateway() -> Generator[str]:
    """Run a Pushgateway; yield its address."""
    program, port = find_program("prometheus-pushgateway"), free_port()
    url = f"http://127.0.0.1:{port}"
    # Debian builds it to keep what it has in a file of the system; an empty name is no file.
    command = [program, f"--web.listen-address=127.0.0.1:{port}", "--persistence.file="]
    with run_server(command, f"{url}/-/ready"):
        yield url


def free_port() -> int:
    """Return a port that is free at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])
