"""What sentences say of a host that is not seen, because another program than linkgauge is there."""

from typing import Final

from ..plan import Dialect

_PROGRAMS: Final = {
    Dialect.BROWSER: "a browser",
    Dialect.NETWORKQUALITY: "networkQuality",
    Dialect.LIBRESPEED: "LibreSpeed",
    Dialect.NDT7: "NDT7",
}


def not_seen(dialect: Dialect) -> str:
    """Return the words for a host whose program speaks a dialect: `not seen through iperf3`."""
    return "not seen" if dialect is Dialect.OBSERVED else f"not seen through {_PROGRAMS.get(dialect, 'iperf3')}"
