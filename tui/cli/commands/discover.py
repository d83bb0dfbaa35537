"""`linkgauge discover`: the endpoints that announce themselves on this LAN."""

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ....engine.model.errors import LinkgaugeError, explain_os_error, require_extra
from ..options import JsonOption
from ..output import emit_json, emit_line, print_stderr

if TYPE_CHECKING:
    from ....discovery.announcement import FoundEndpoint

_MAX_SECONDS: Final = 60


def discover(
    *,
    seconds: Annotated[
        float, typer.Option(min=0.5, max=_MAX_SECONDS, metavar="N", help="Seconds to look for endpoints.")
    ] = 3.0,
    as_json: JsonOption = False,
) -> int:
    """List the endpoints that announce themselves on this LAN.

    They were started with linkgauge endpoint --announce NAME. Anybody on the LAN can announce any name: nothing is
    connected to, and only the key proves who an endpoint is. Needs pip install 'linkgauge[discover]'.
    """
    require_extra("linkgauge discover needs multicast DNS", "discover", "zeroconf")
    from ....discovery.finder import find_endpoints
    from ....engine.host.event_loop import run

    try:
        endpoints = run(find_endpoints(seconds))
    except OSError as error:
        raise LinkgaugeError(f"this host has no multicast DNS: {explain_os_error(error)}") from error
    if as_json:
        emit_json({"endpoints": [_document(each) for each in endpoints]})
        return 0
    for each in endpoints:
        emit_line(f"{each.peer!s:<28} {_needs(each):<12} {each.name}")
        if each.iperf3_peer is not None:
            emit_line(f"{each.iperf3_peer!s:<28} {'iperf3':<12} {each.name}")
    if not endpoints:
        print_stderr("no endpoint was announced on this LAN; start one with: linkgauge endpoint --announce NAME")
    return 0


def _needs(endpoint: "FoundEndpoint") -> str:
    """Return what a client needs, as the endpoint says."""
    needs = [name for name, wanted in (("key", endpoint.wants_key), ("TLS", endpoint.wants_tls)) if wanted]
    return "+".join(needs) or ("open" if endpoint.wants_key is False else "unknown")


def _document(endpoint: "FoundEndpoint") -> dict[str, Any]:
    return {
        "name": endpoint.name,
        "peer": str(endpoint.peer),
        "protocol": endpoint.protocol_version,
        "wants_key": endpoint.wants_key,
        "wants_tls": endpoint.wants_tls,
        "iperf3_peer": None if endpoint.iperf3_peer is None else str(endpoint.iperf3_peer),
    }
