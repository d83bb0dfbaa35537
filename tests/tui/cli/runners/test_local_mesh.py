"""The command that a mesh runs in its lab; whole labs are in tests/end_to_end/test_mesh_command.py."""

import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from linkgauge.engine.lab.hosts_spec import MeshLabSpec
from linkgauge.engine.model.errors import PlanError
from linkgauge.mesh.lab.mesh_lab import MeshLab
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.cli.runners import local_mesh
from linkgauge.tui.cli.runners.local_mesh import run_local_mesh
from linkgauge.tui.mesh.mesh_spec import EmulatedHosts

HOSTS = EmulatedHosts("gbe-fd-1500", 4, racks=2, slow=("host-2",))
SCHEDULER = "tls://198.18.0.1:8786"


class Lab(MeshLab):
    """A lab whose command is noted instead of run: hosts take seconds to start."""

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Note the command, and the hosts file as it is now."""
        assert environment is None
        commands.append(list(command))
        if "--hosts" in command:
            hosts_files.append(Path(option(command, "--hosts")).read_text(encoding="utf-8"))
        return 4


commands: list[list[str]] = []
hosts_files: list[str] = []
specs: list[MeshLabSpec] = []


def option(command: Sequence[str], name: str) -> str:
    """Return the value of an option."""
    return command[command.index(name) + 1]


@pytest.fixture(params=[True, False], ids=["namespaces", "loopback"])
def is_emulated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Have labs opened at once, with and without emulated links."""

    @contextmanager
    def open_lab(spec: MeshLabSpec) -> Generator[MeshLab]:
        specs.append(spec)
        yield Lab(
            spec=spec,
            scheduler=SCHEDULER,
            workers={},
            settings={},
            is_emulated=request.param,
            notes=("a note of the lab",),
            keeper_pid=0,
            has_offloads_off=False,
        )

    for each in (commands, hosts_files, specs):
        each.clear()
    monkeypatch.setattr(local_mesh, "open_mesh_lab", open_lab)
    return request.param


def test_the_command_in_the_lab_has_its_scheduler_its_hosts_and_the_options(
    is_emulated: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hosts on loopback have no link to compare with. The command's exit status is the mesh's."""
    assert run_local_mesh(load_catalog(), HOSTS, "gbe-fd-1500", ["--rounds", "1", "--json"]) == 4
    assert capsys.readouterr().err == "linkgauge: a note of the lab\n"
    (command,) = commands
    assert command[:5] == [sys.executable, "-P", "-m", "linkgauge", "mesh"]
    assert command[-3:] == ["--rounds", "1", "--json"]
    assert option(command, "--scheduler") == SCHEDULER
    assert option(command, "--preset") == ("gbe-fd-1500" if is_emulated else "none")
    assert EmulatedHosts.from_json(option(command, "--emulated")) == HOSTS
    assert hosts_files == ["host-1 rack-1\nhost-2 rack-1\nhost-3 rack-2\nhost-4 rack-2\n"]
    assert not Path(option(command, "--hosts")).parent.exists()


def test_a_slow_host_has_half_of_its_rate_in_both_directions(is_emulated: bool) -> None:
    """The others have the preset's rate."""
    run_local_mesh(load_catalog(), HOSTS, "none", [])
    first, slow, *_ = specs[0].hosts
    for of_slow, of_first in ((slow.sends, first.sends), (slow.receives, first.receives)):
        assert of_slow.rate_bit_s == pytest.approx(of_first.rate_bit_s / 2, rel=0.01)


def test_a_mesh_that_is_resumed_has_its_hosts_and_preset_in_the_log(is_emulated: bool) -> None:
    """Only the scheduler is another one."""
    run_local_mesh(load_catalog(), HOSTS, "gbe-fd-1500", ["--resume", "last"])
    assert commands[0][5:] == ["--scheduler", SCHEDULER, "--resume", "last"]


def test_hosts_that_cannot_be_built_open_no_lab(is_emulated: bool) -> None:
    """An unknown slow host is the user's mistake."""
    with pytest.raises(PlanError, match="host-9"):
        run_local_mesh(load_catalog(), EmulatedHosts("gbe-fd-1500", 4, slow=("host-9",)), "none", [])
    assert not specs
