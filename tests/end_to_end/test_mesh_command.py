"""The mesh command on emulated hosts: Dask's workers, real runs, and the slow host by its name."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..json_schemas import check
from .conftest import CommandLine

DEADLINE_S = 100.0


@pytest.mark.every
@pytest.mark.timeout(120)
def test_a_slow_host_among_emulated_ones_is_named_and_its_runs_are_in_the_log(tmp_path: Path) -> None:
    """With the rack as its group; the status says that not all is well."""
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path)}
    options = ["--local", "3", "--slow", "host-2", "--seconds", "0.6", "--json"]
    command = [sys.executable, "-m", "linkgauge"]
    done = subprocess.run(
        [*command, "mesh", *options],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    if "loopback" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    check("mesh.schema.json", document)
    assert document["is_complete"], done.stderr
    assert {host["group"] for host in document["hosts"]} == {"rack-1"}
    assert document["findings"][0]["sender"] == "host-2", done.stdout
    listed = subprocess.run(
        [*command, "runs", "list", "--json"], env=environment, capture_output=True, text=True, check=True
    )
    runs = json.loads(listed.stdout)
    assert {run["run_id"] for run in runs} >= {cell["run_id"] for cell in document["cells"]}


@pytest.mark.every
@pytest.mark.timeout(240)
def test_an_interrupted_mesh_of_emulated_hosts_is_resumed_on_the_same_links(linkgauge: CommandLine) -> None:
    """By the name that it prints, and nothing else: hosts, racks and preset are stored."""
    options = ["--local", "3", "--racks", "2", "--preset", "10mb-fd", "--seconds", "1"]
    process, group = linkgauge.start("mesh", *options, "--json-stream"), ""
    assert process.stdout is not None
    for line in process.stdout:
        item = json.loads(line)
        group = item.get("group", group)
        if item["type"] == "mesh_cell":
            process.send_signal(signal.SIGINT)
            break
    answer = linkgauge.finish(process, DEADLINE_S)
    if "loopback" in answer.err:
        pytest.skip(answer.err)
    assert answer.status == 128 + signal.SIGINT, answer.err
    assert f"linkgauge mesh --resume {group}" in answer.err
    resumed = linkgauge.finish(linkgauge.start("mesh", "--resume", group, "--json"), DEADLINE_S)
    assert resumed.status == 0, resumed.err
    document = resumed.document
    assert document["is_complete"], resumed.err
    assert {host["group"] for host in document["hosts"]} == {"rack-1", "rack-2"}
    assert {cell["expected_mbit_s"] for cell in document["cells"]} == {9.48}
    assert all(cell["mbit_s"] < 10 for cell in document["cells"])
