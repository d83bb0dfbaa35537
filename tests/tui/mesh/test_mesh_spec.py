"""The request for a mesh, and the beginning of each session."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.errors import UsageError
from linkgauge.mesh.figures import CellFigure
from linkgauge.mesh.plan import GROUP_PREFIX, Host, MeshMode
from linkgauge.tui.mesh.mesh_spec import EmulatedHosts, MeshSpec, new_mesh_name

from ..scripted_mesh import CATALOG, HOSTS, PLAN, PRESET, SLOW, UNREACHABLE

WITHOUT_HOSTS = MeshSpec(replace(PLAN, hosts=()), "tcp://10.0.0.1:8786")


def test_each_session_of_a_mesh_tries_its_failed_cells_and_its_slow_ones_again() -> None:
    """Its hosts are found anew: their addresses may have changed."""
    spec = MeshSpec(PLAN, has_rechecks_left=True)
    known = tuple(replace(host, address=f"10.0.0.{number}") for number, host in enumerate(HOSTS))
    before = replace(spec, plan=replace(PLAN, hosts=known), has_rechecks_left=False)
    failed = before.with_failures({SLOW: CellFigure(SLOW, failure=UNREACHABLE)})
    assert failed.failures
    assert failed.begin(failed.hosts) == spec
    isolated = replace(failed, plan=replace(PLAN, mode=MeshMode.ISOLATED))
    assert not isolated.begin(isolated.hosts).has_rechecks_left


def test_the_workers_of_a_scheduler_become_the_hosts_of_a_mesh_that_names_none() -> None:
    """One is too few."""
    assert WITHOUT_HOSTS.hosts == ()
    assert WITHOUT_HOSTS.begin(HOSTS).plan == PLAN
    with pytest.raises(UsageError, match="at least 2 hosts; you gave 1"):
        WITHOUT_HOSTS.begin((Host("db-01"),))


def test_a_mesh_is_judged_by_its_preset_or_by_the_one_that_fits_each_pair() -> None:
    """Or by no preset."""
    assert MeshSpec(PLAN).judging(CATALOG).preset is CATALOG
    assert MeshSpec(replace(PLAN, preset=PRESET.id)).judging(CATALOG).preset == PRESET
    assert MeshSpec(replace(PLAN, preset=None)).judging(CATALOG).preset is None


def test_emulated_hosts_are_an_argument_of_a_command() -> None:
    """Linkgauge starts that command itself."""
    emulated = EmulatedHosts("10mb-fd", hosts=3, racks=2, slow=("host-1",))
    assert EmulatedHosts.from_json(emulated.to_json()) == emulated


def test_the_name_of_a_new_mesh_is_a_group_of_its_own() -> None:
    """Different from every other mesh and sweep."""
    assert new_mesh_name().startswith(GROUP_PREFIX)
    assert new_mesh_name() != new_mesh_name()
