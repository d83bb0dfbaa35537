"""A real SLURM on network namespaces: its controller on the hub, a daemon of a node in each other one."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pytest

from .mesh_hosts import DEADLINE_S, HUB_ADDRESS, MeshHosts

_PROGRAMS: Final = ("slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "munged", "unshare")
_MUNGE_FOLDER: Final = Path("/run/munge")  # munged and SLURM's libraries look nowhere else
# As docs/mesh-on-slurm.md has it, with a log folder and an address of the hub.
_CLUSTER: Final = """
import sys
from dask_jobqueue import SLURMCluster

cluster = SLURMCluster(cores=2, processes=1, memory="2GB", walltime="01:00:00",
                       job_extra_directives=["--exclusive"],
                       worker_extra_args=["--resources", "nic=1"],
                       scheduler_options={"host": sys.argv[1]}, log_directory=sys.argv[2])
cluster.scale(jobs=int(sys.argv[3]))
print(cluster.scheduler_address, flush=True)
sys.stdin.read()
cluster.close()
"""


class SlurmNodes:
    """Nodes of a SLURM, and Dask workers that its jobs run. `scheduler` is the address of Dask's scheduler."""

    def __init__(self, count: int, folder: Path) -> None:
        if missing := [program for program in _PROGRAMS if shutil.which(program) is None]:
            pytest.skip(f"{', '.join(missing)} not found (Debian: slurmctld, slurmd, slurm-client, munge)")
        pytest.importorskip("dask_jobqueue")
        self.hosts = MeshHosts(count)
        self._folder, self._count = folder, count
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
        self._munged: subprocess.Popen[Any] | None = None
        self._cluster: subprocess.Popen[str] | None = None
        try:
            self._start()
            self.scheduler = self._start_cluster()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        """Start the daemons, and wait until all nodes are idle."""
        (self._folder / "state").mkdir()
        (self._folder / "slurm.conf").write_text(self._configuration(), encoding="ascii")
        _MUNGE_FOLDER.mkdir(exist_ok=True)
        shutil.chown(_MUNGE_FOLDER, "munge", "munge")
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._munged = subprocess.Popen([str(shutil.which("munged")), "--foreground", "--force"], **quiet)
        self._within(self.hosts.hub, "hub", "slurmctld", "-D")
        for name, entry in self.hosts.entries.items():
            self._within(entry, name, "slurmd", "-D", "-N", name)
        deadline = time.monotonic() + DEADLINE_S
        while self.ask("sinfo", "-h", "-t", "idle", "-o", "%D").strip() != str(self._count):
            assert time.monotonic() < deadline, self.ask("sinfo")
            time.sleep(0.2)

    def _configuration(self) -> str:
        nodes = "".join(
            f"NodeName={name} NodeAddr={self.hosts.address(name)} CPUs=2 RealMemory=4000 State=UNKNOWN\n"
            for name in self.hosts.entries
        )
        return (
            f"ClusterName=mesh\nSlurmctldHost=hub({HUB_ADDRESS})\nAuthType=auth/munge\nSlurmUser=root\n"
            f"StateSaveLocation={self._folder}/state\nSlurmdSpoolDir={self._folder}/spool-%n\n"
            f"SlurmctldPidFile={self._folder}/slurmctld.pid\nSlurmdPidFile={self._folder}/slurmd-%n.pid\n"
            "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\n"
            "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nSlurmdParameters=config_overrides\n"
            f"ReturnToService=2\n{nodes}PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        )

    def _within(self, entry: list[str], name: str, *command: str) -> None:
        """Start a daemon in a namespace, under the host name by which SLURM knows it."""
        words = ("unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', "sh", *command)
        self.hosts.start(entry, *words, env=self.environment)

    def ask(self, *command: str) -> str:
        """Return what a command of SLURM says."""
        words = [*self.hosts.hub, *command]
        return subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=False, timeout=DEADLINE_S
        ).stdout

    def _start_cluster(self) -> str:
        """Submit the jobs of the workers; return the scheduler's address once all have come."""
        words = (HUB_ADDRESS, str(self._folder), str(self._count))
        self._cluster = subprocess.Popen(
            [*self.hosts.hub, sys.executable, "-c", _CLUSTER, *words],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._cluster.stdout is not None
        scheduler = self._cluster.stdout.readline().strip()
        self.hosts.wait_for_workers(scheduler, self._count)
        return scheduler

    def end_cluster(self) -> None:
        """End the workers as a person does, by the end of the program that started them."""
        if self._cluster is not None:
            self._cluster.communicate(timeout=DEADLINE_S)

    def close(self) -> None:
        """End the daemons and the namespaces."""
        if self._cluster is not None and self._cluster.poll() is None:
            self._cluster.kill()
            self._cluster.communicate()
        self.hosts.close()
        if self._munged is not None:
            self._munged.terminate()
            self._munged.wait(DEADLINE_S)
