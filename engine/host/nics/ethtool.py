"""The line rate, duplex and offloads of an interface, by the ethtool ioctl (linux/ethtool.h).

A request is a structure that the driver fills in, by way of struct ifreq.
"""

import array
import socket
import struct
from contextlib import suppress
from typing import Final, Literal, NamedTuple

_SIOCETHTOOL: Final = 0x8946
_IFREQ: Final = struct.Struct("16sP16x")  # struct ifreq with a pointer
_ETHTOOL_GTSO, _ETHTOOL_GGSO, _ETHTOOL_GFLAGS, _ETHTOOL_GGRO = 0x1E, 0x23, 0x25, 0x2B
_ETH_FLAG_LRO: Final = 1 << 15
_ETHTOOL_GLINKSETTINGS: Final = 0x4C
_LINK_SETTINGS: Final = struct.Struct("=IIB6xb")  # up to link_mode_masks_nwords
_MASK_WORDS_OFFSET: Final = _LINK_SETTINGS.size - 1
_LINK_SETTINGS_WORDS: Final = 12 + 3 * 127  # the structure, and three masks of as many words as fit the field
_MBIT_S: Final = 1_000_000
_UNKNOWN_SPEEDS: Final = {0, 0xFFFF, 0xFFFF_FFFF}  # SPEED_UNKNOWN, as 16 and as 32 bits
_DUPLEXES: Final[dict[int, Literal["full", "half"]]] = {0: "half", 1: "full"}


class Line(NamedTuple):
    """The line of an interface; None if its driver does not report a value."""

    rate_bit_s: int | None = None
    duplex: Literal["full", "half"] | None = None


class Offloads(NamedTuple):
    """Work on segments that an interface does; None if its driver does not report it."""

    tso: bool | None
    gso: bool | None
    gro: bool | None
    lro: bool | None


def read_line(sock: socket.socket, name: str) -> Line:
    """Return rate and duplex. The first request learns the size of the masks, the second one reads (ethtool.h)."""
    settings = array.array("I", [0] * _LINK_SETTINGS_WORDS)
    settings[0] = _ETHTOOL_GLINKSETTINGS
    if not _ethtool(sock, name, settings):
        return Line()
    data = memoryview(settings).cast("B")
    *_, mask_words = _LINK_SETTINGS.unpack_from(data)
    if mask_words >= 0:
        return Line()
    data[_MASK_WORDS_OFFSET] = -mask_words
    if not _ethtool(sock, name, settings):
        return Line()
    _, speed_mbit_s, duplex, _ = _LINK_SETTINGS.unpack_from(data)
    rate_bit_s = None if speed_mbit_s in _UNKNOWN_SPEEDS else speed_mbit_s * _MBIT_S
    return Line(rate_bit_s, _DUPLEXES.get(duplex))


def read_offloads(sock: socket.socket, name: str) -> Offloads:
    """Return the offloads of an interface; an unknown one is None."""
    flags = _read_value(sock, name, _ETHTOOL_GFLAGS)
    return Offloads(
        *(_read_switch(sock, name, command) for command in (_ETHTOOL_GTSO, _ETHTOOL_GGSO, _ETHTOOL_GGRO)),
        lro=None if flags is None else bool(flags & _ETH_FLAG_LRO),
    )


def _read_switch(sock: socket.socket, name: str, command: int) -> bool | None:
    value = _read_value(sock, name, command)
    return None if value is None else bool(value)


def _read_value(sock: socket.socket, name: str, command: int) -> int | None:
    value = array.array("I", (command, 0))  # struct ethtool_value
    return value[1] if _ethtool(sock, name, value) else None


def _ethtool(sock: socket.socket, name: str, structure: "array.array[int]") -> bool:
    """Run an ethtool request: the driver fills in the structure. Return whether it succeeded."""
    import fcntl  # not on every system

    with suppress(OSError):
        fcntl.ioctl(sock, _SIOCETHTOOL, _IFREQ.pack(name.encode(), structure.buffer_info()[0]))
        return True
    return False
