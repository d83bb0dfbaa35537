"""The description of a host: values that no host can have are refused."""

import pytest
from linkgauge.engine.model.host_info import TcpSysctls


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_no_kernel_has_is_refused(limit: int) -> None:
    """Windows are computed from it."""
    with pytest.raises(ValueError, match="buffer limits"):
        TcpSysctls(rmem_max_bytes=limit)
