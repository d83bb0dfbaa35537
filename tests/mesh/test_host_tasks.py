"""What a Dask worker does for a mesh on its host."""

import pickle

from linkgauge.engine.model.peer import SharedKey
from linkgauge.engine.model.plan import Plan
from linkgauge.mesh.host_tasks import CellRequest


def test_a_request_and_a_key_travel_as_dask_sends_them() -> None:
    """A key is not printed on its way: Dask logs the arguments of what fails."""
    request = CellRequest("mesh-1", "127.0.0.2", "127.0.0.3", 5820, Plan(), 18.0, "cell-1")
    assert pickle.loads(pickle.dumps(request)) == request  # noqa: S301 - it is ours
    key = SharedKey.generate()
    again = pickle.loads(pickle.dumps(key))  # noqa: S301
    assert again.reveal() == key.reveal()
    assert key.reveal() not in repr(again)
