"""`linkgauge discover`: the endpoints that announce themselves on this LAN."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ....engine.model.errors import LinkgaugeError, PlanError, explain_os_error, require_extra
from ..click_extension.option_fields import option
from ..output import emit_json, emit_line, print_stderr
from ..output_options import json_flag, redact_flag

if TYPE_CHECKING:
    from ....discovery.announcement import FoundEndpoint

_MIN_SECONDS: Final = 0.5
_MAX_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class DiscoverOptions:
    """How long it looks, and how the result is printed."""

    seconds: float = option("", "Seconds to look for endpoints.", default=3.0, metavar="N")
    as_json: bool = json_flag()
    redact: bool = redact_flag()


def discover(options: DiscoverOptions) -> int:
    """List the endpoints that announce themselves on this LAN.

    They were started with linkgauge endpoint --announce NAME. Anybody on the LAN can announce any name: nothing is
    connected to, and only the key proves who an endpoint is. Needs pip install 'linkgauge[discover]'.
    """
    if not _MIN_SECONDS <= options.seconds <= _MAX_SECONDS:
        raise PlanError("--seconds", f"{options.seconds:g}", f"give {_MIN_SECONDS} to {_MAX_SECONDS}")
    require_extra("linkgauge discover needs multicast DNS", "discover", "zeroconf")
    from ....discovery.finder import find_endpoints
    from ....engine.host.event_loop import run

    try:
        endpoints = run(find_endpoints(options.seconds))
    except OSError as error:
        raise LinkgaugeError(f"this host has no multicast DNS: {explain_os_error(error)}") from error
    if options.as_json:
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
    """Return the requirements of the endpoint for a client."""
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
