"""The congestion control, local address, interface and ports of data connections, checked before a run.

The kernel would refuse wrong ones as well, but only in a worker, and in its own words.
"""

import errno
import socket
from typing import Any

from ..host.nics.rtnetlink import interface_families, local_addresses
from ..model.errors import PlanError, explain_os_error
from ..model.ip_address import parse_ip_address
from ..model.plan import Plan, SocketOptions
from ..workloads.sockets import available_congestion_controls, local_address, set_congestion


def check_options(options: SocketOptions) -> None:
    """Raise PlanError if this machine has no such congestion control, interface or address."""
    if options.congestion is not None:
        _check_congestion(options.congestion)
    if options.device is not None:
        _check_device(options.device)
    if options.source is not None:
        _check_source(options.source)


def check_binding(plan: Plan, remote: str) -> None:
    """Raise PlanError if the connections of a plan cannot be bound as it says.

    Args:
        plan: the plan of a run.
        remote: the IP address of the far end: the connections have its family.
    """
    family = _family_of(remote)
    source = plan.socket.source
    if source is not None and _family_of(source) is not family:
        version = 6 if family is socket.AF_INET6 else 4
        addresses = [text for text in local_addresses() if _family_of(text) is family]
        raise PlanError("source", source, f"{remote} needs an IPv{version} address: {_choice(addresses)}")
    if plan.client_port is not None:
        for port in range(plan.client_port, plan.client_port + plan.settings.connections):
            _check_port(family, source, port)


def _check_congestion(name: str) -> None:
    with socket.socket() as sock:
        try:
            set_congestion(sock, name)  # the kernel may load its module now: no list has it
        except FileNotFoundError as error:
            available = ", ".join(available_congestion_controls())
            raise PlanError("congestion control", name, f"this machine has {available}") from error
        except OSError as error:
            raise PlanError("congestion control", name, explain_os_error(error)) from error


def is_reachable(options: SocketOptions, family: int, address: tuple[Any, ...]) -> bool:
    """Return whether a connection from the source and device of the options may get to a socket address."""
    if options.source is not None:
        return _family_of(options.source) == family
    if options.device is None or parse_ip_address(str(address[0])).is_link_local:
        return True
    families = interface_families(options.device)
    return not families or family in families


def _check_device(name: str) -> None:
    names = [interface for _, interface in socket.if_nameindex()]
    if name not in names:
        raise PlanError("device", name, f"this machine has no such interface; it has {', '.join(names)}")
    if not hasattr(socket, "SO_BINDTODEVICE"):
        raise PlanError("device", name, "this system does not bind connections to an interface; give --source")
    with socket.socket() as sock:
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode() + b"\0")
        except OSError as error:
            text = f"{explain_os_error(error)}; give --source, or run as root"
            raise PlanError("device", name, text) from error


def _check_source(source: str) -> None:
    with socket.socket(_family_of(source)) as sock:
        try:
            sock.bind(local_address(source, 0))
        except OSError as error:
            text = f"this machine has no such address; it has {_choice(local_addresses())}"
            raise PlanError("source", source, text) from error


def _check_port(family: socket.AddressFamily, source: str | None, port: int) -> None:
    with socket.socket(family) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(local_address(source, port) if source else ("", port))
        except OSError as error:
            if error.errno == errno.EACCES:
                raise PlanError("client port", port, "ports below 1024 need root; give a higher one") from error
            raise PlanError("client port", port, "another program uses this port; give a free one") from error


def _family_of(address: str) -> socket.AddressFamily:
    try:
        return socket.AF_INET if parse_ip_address(address).version == 4 else socket.AF_INET6
    except ValueError as error:
        raise PlanError(
            "source", address, f"give an IP address of this machine: {_choice(local_addresses())}"
        ) from error


def _choice(addresses: list[str]) -> str:
    return ", ".join(addresses) or "it has none"
