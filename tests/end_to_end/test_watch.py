"""`linkgauge watch` as a service runs it: its signals, and a second watch of the same name.

`tests/stress/watch_kills.py` kills it; a short run of that is in `tests/stress/test_scripts.py`.
"""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from linkgauge.engine.results.run_log.journal import Journal

START = """
[watch]
name = "service"
[watch.defaults]
every = "2s"
probe_every = "none"
preset = "none"
seconds = 0.5
warmup = 0
rate = "20M"
"""


def write(file: Path, *peers: str, address: str) -> Path:
    """Write a watch of peers of these names."""
    tables = (f'[[peer]]\nname = "{name}"\naddress = "{address}"\n' for name in peers)
    file.write_text(START + "".join(tables), encoding="utf-8")
    return file


def read_until(process: subprocess.Popen[str], kind: str, **members: object) -> dict[str, Any]:
    """Return the first event that has these members."""
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == kind and all(event[name] == value for name, value in members.items()):
            return event
    raise AssertionError(f"the watch ended without a {kind} with {members}")


def test_sigterm_ends_a_watch_in_order(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """Its journal ends with the end of the watch."""
    file = write(tmp_path / "service.toml", "one", address=far_end)
    process = linkgauge.start("watch", file, "--headless", "--json-stream")
    read_until(process, "check_end", peer="one")
    process.send_signal(signal.SIGTERM)
    answer = linkgauge.finish(process)
    assert (answer.status, answer.err) == (143, "")
    with Journal(linkgauge.data_dir / "runs.sqlite3", "watch-service") as journal:
        assert json.loads(list(journal.entries())[-1].text)["type"] == "watch_end"


def test_sighup_reads_the_file_again(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """A wrong file changes nothing; a right one brings its peers."""
    file = write(tmp_path / "service.toml", "one", address=far_end)
    process = linkgauge.start("watch", file, "--headless", "--json-stream")
    read_until(process, "check_end", peer="one")
    file.write_text("[watch", encoding="utf-8")
    process.send_signal(signal.SIGHUP)
    assert "not reloaded" in read_until(process, "watch_notice")["text"]
    read_until(process, "check_end", peer="one")
    write(file, "one", "two", address=far_end)
    process.send_signal(signal.SIGHUP)
    read_until(process, "watch_start", peers=["one", "two"])
    read_until(process, "check_end", peer="two")
    process.send_signal(signal.SIGTERM)
    assert linkgauge.finish(process).status == 143


def test_a_second_watch_of_the_same_name_is_refused(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """The first one goes on."""
    file = write(tmp_path / "service.toml", "one", address=far_end)
    process = linkgauge.start("watch", file, "--headless", "--json-stream")
    read_until(process, "check_end", peer="one")
    second = linkgauge("watch", file, "--headless")
    assert second.status == 2
    assert "it runs already" in second.err
    read_until(process, "check_end", peer="one")
    process.send_signal(signal.SIGTERM)
    assert linkgauge.finish(process).status == 143
