"""The keeper of emulated hosts: they end with it, and it can do without namespaces."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest
from linkgauge.engine.lab.namespaces import find_processes
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.mesh.lab.mesh_lab import open_mesh_lab

from ...engine.child_processes import children_of
from ...engine.lab.labs import DEADLINE_S, lab_hosts, network_of, wait_for_end

SPEC = lab_hosts("rack", "rack")
USE = """
import sys
from distributed import Client
with Client(sys.argv[1], timeout=float(sys.argv[2]), set_as_default=False) as client:
    assert client.submit(int, "7").result(timeout=10) == 7
"""


@pytest.mark.every
@pytest.mark.parametrize("number", [None, signal.SIGKILL])
def test_hosts_and_dask_end_with_the_keeper(number: signal.Signals | None) -> None:
    """Whether the lab is taken down, a command is left in it, or the keeper is killed."""
    try:
        with open_mesh_lab(SPEC) as lab:
            if not lab.is_emulated:
                pytest.skip(" ".join(lab.notes))
            parts = {lab.keeper_pid, *children_of(lab.keeper_pid)}
            assert {*lab.workers.values()} < parts
            networks = {network_of(pid) for pid in parts}
            assert len(networks) == 3
            if number is None:
                sleep = lab.host_command("a", ["sh", "-c", "echo up; exec sleep 600"])
                left = subprocess.Popen(sleep, stdout=subprocess.PIPE)
                assert left.stdout is not None
                assert left.stdout.readline() == b"up\n"
            else:
                os.kill(lab.keeper_pid, number)
                wait_for_end(parts - {lab.keeper_pid})
    except LabUnavailable as error:
        pytest.skip(str(error))
    if number is None:
        left.communicate(timeout=DEADLINE_S)
        assert left.returncode == -signal.SIGHUP
    wait_for_end(parts)
    assert find_processes(networks) == []


@pytest.mark.every
def test_without_namespaces_the_hosts_are_addresses_of_loopback() -> None:
    """In a user namespace that may not have network namespaces; its notes say so. Nothing is left afterwards.

    Any user can reach loopback, so a client needs the lab's certificate to use the scheduler.
    """
    code = textwrap.dedent(f"""
        import json, subprocess, sys
        from linkgauge.engine.lab.link_spec import LabLink
        from linkgauge.mesh.lab.mesh_lab import open_mesh_lab
        from linkgauge.engine.lab.hosts_spec import LabHost, LabTrunk, MeshLabSpec
        from {children_of.__module__} import children_of
        with open_mesh_lab({SPEC!r}) as lab:
            use = [sys.executable, "-c", {USE!r}, lab.scheduler]
            assert lab.run([*use, "10"]) == 0
            assert subprocess.call([*use, "1"], stderr=subprocess.DEVNULL) == 1
            print(json.dumps([lab.is_emulated, lab.scheduler, lab.notes, children_of(lab.keeper_pid)]))
    """)
    forbid = 'echo 0 > /proc/sys/user/max_net_namespaces || exit 77; exec "$@"'
    unshare = [shutil.which("unshare") or "unshare", "--user", "--map-root-user"]
    done = subprocess.run(
        [*unshare, "sh", "-c", forbid, "sh", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * DEADLINE_S,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    is_emulated, scheduler, notes, parts = json.loads(done.stdout)
    assert not is_emulated
    assert scheduler.startswith("tls://127.0.0.1:")
    assert "rates are loopback's: this machine cannot create a network namespace" in notes[0]
    assert len(parts) == 3
    wait_for_end(set(parts))
