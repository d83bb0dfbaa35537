"""The costs of a mesh as its hosts become more."""

import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.mesh.reading import find_faults
from mesh_cost import Cost, extrapolate, make_matrix

SCRIPT = Path(__file__).parents[2] / "bench" / "mesh_cost.py"


@pytest.mark.every  # four processes that import Dask
@pytest.mark.timeout(120)
def test_a_small_mesh_of_simulated_hosts_is_measured() -> None:
    """Every cell of a real cluster has a result."""
    command = [sys.executable, str(SCRIPT), "--hosts", "3", "--seconds", "0.5"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=110)
    row = [cell.strip() for cell in done.stdout.splitlines()[-1].strip("| ").split("|")]
    assert row[:3] == ["3", "6", "3"]


def test_larger_meshes_are_computed_from_the_two_largest() -> None:
    """By cells."""
    small = Cost(8, 56, 7, 1.0, 0.5, 100, 1.0, 0.001, 3.0)
    large = Cost(16, 240, 15, 4.0, 2.0, 146, 4.0, 0.004, 3.0)
    thousand = extrapolate([large, small], 1000)
    assert thousand.cells == 999_000
    assert thousand.rounds == 999
    assert thousand.mib == pytest.approx(146 + 0.25 * (999_000 - 240))
    assert large.round_share == pytest.approx(2.0 / (15 * 2 * 4))
    assert thousand.cpu_s == pytest.approx(2.0 + 1.5 / 184 * 998_760)


def test_what_is_read_has_faults() -> None:
    """One host in eight."""
    assert len(find_faults(make_matrix(16))) == 2
