"""The path MTU of both directions, in words and as JSON."""

from typing import Any, Final

from ....engine.model.directions import Direction, End
from ....engine.model.texts.shell_commands import set_mtu_command
from ....engine.protocol.path_probe import MIN_PATH_MTU_BYTES, DirectionMtu, MtuBound, PathMtu
from ....engine.results.figure_codec import DOCUMENT_VERSION
from ...words.numbers import arrow, quantity, sanitize

_ICMP: Final = {4: "ICMP type 3 code 4", 6: "ICMPv6 type 2"}


def path_mtu_lines(path: PathMtu) -> list[str]:
    """Return a line about the path, one for each direction, and a remedy for each black hole."""
    lines = [f"path MTU to {sanitize(path.peer)}, IPv{path.ip_version}"]
    for each in path.directions:
        lines.append(
            f"{arrow(each.direction)} {each.direction:3} {_size_words(each)}: {_bound_words(each, path.ip_version)}"
        )
        lines += _remedies(each, path.ip_version)
    return lines


def _sender(each: DirectionMtu) -> End:
    return End.NEAR if each.direction is Direction.OUT else End.FAR


def _size_words(each: DirectionMtu) -> str:
    if each.mtu_bytes is None:
        return "unknown"
    payload_bytes = each.mtu_bytes - each.header_bytes
    return f"{quantity(each.mtu_bytes, 'byte')} ({quantity(payload_bytes, 'byte')} of UDP payload)"


def _bound_words(each: DirectionMtu, ip_version: int) -> str:
    name = "" if each.interface is None else f" {sanitize(each.interface)}"
    if each.bound is MtuBound.INTERFACE:
        return f"the MTU of the {_sender(each).label} interface{name}"
    if each.bound is MtuBound.ROUTER:
        return f"router {each.router} refuses longer packets"
    if each.mtu_bytes is None:
        return f"not even packets of {MIN_PATH_MTU_BYTES[ip_version]} bytes arrive"
    return "longer packets disappear, and no router says so (a black hole)"


def _remedies(each: DirectionMtu, ip_version: int) -> list[str]:
    if each.bound is not MtuBound.BLACK_HOLE or each.mtu_bytes is None:
        return []
    setting = "the MTU of its interface"
    if each.interface is not None:
        setting = f"it there: {set_mtu_command(each.interface, each.mtu_bytes)}"
    remedy = (
        f"  TCP connections can hang on it. Allow {_ICMP[ip_version]} in every firewall on the way, "
        f"raise the MTU of the link that drops them, or set {setting} (on the {_sender(each).label} host)"
    )
    return [remedy]


def path_mtu_json(path: PathMtu) -> dict[str, Any]:
    """Return the document of `linkgauge mtu --json`."""
    return {
        "schema": DOCUMENT_VERSION,
        "peer": path.peer,
        "ip_version": path.ip_version,
        **{
            each.direction.value: {
                "mtu_bytes": each.mtu_bytes,
                "datagram_bytes": each.datagram_bytes,
                "bound": each.bound.value,
                "interface": each.interface,
                "interface_mtu_bytes": each.interface_bytes,
                "router": each.router,
            }
            for each in path.directions
        },
    }
