"""A mesh on a real Dask cluster of loopback: rounds, faults, an early end, two meshes at once."""

from linkgauge.mesh.coordinator import open_mesh


def test_a_mesh_is_opened_by_a_context_manager() -> None:
    """Until it is written: what others build against."""
    assert callable(open_mesh)
