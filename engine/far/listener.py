"""The listening socket of an endpoint, and the names by which other hosts reach it."""

import contextlib
import errno
import re
import socket
import threading
from ipaddress import ip_address
from typing import Any, Final

from ..host.happy_eyeballs import resolvable
from ..host.nics.rtnetlink import read_addresses, read_link_local_hosts
from ..host.shortage import start_if_possible
from ..model.errors import EndpointError, explain_os_error
from ..model.ip_address import IpAddress, unmap_ip_address

_BACKLOG: Final = 1_024
_ANY: Final = {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
_DOCUMENTATION: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}  # RFC 5737 and 3849
_RESOLVE_DEADLINE_S: Final = 1.0
_IPV6_PARTS: Final = 4
_PORT_TRIES: Final = 8
_ZONE: Final = re.compile(r"%[^\]]+")  # up to the end of the host (engine/model/ip_address)
CLIENT_INTERFACE: Final = "INTERFACE"
"""In place of the client's interface in a command for another host, if the address is link-local."""


def listen(bind: str | None, port: int, *, option: str = "--port") -> socket.socket:
    """Return a listening socket, without an address on all addresses of both families.

    A free port (0) is free for UDP as well. `option` is the command-line option for the port, for the error's text.
    Raises EndpointError with a remedy.
    """
    for _ in range(_PORT_TRIES if not port else 0):
        listener = _listen(bind, port, option)
        if _is_free_for_udp(listener):
            return listener
        listener.close()
    return _listen(bind, port, option)


def _is_free_for_udp(listener: socket.socket) -> bool:
    with socket.socket(listener.family, socket.SOCK_DGRAM) as sock:
        try:
            if listener.family == socket.AF_INET6:
                only = listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
            sock.bind(listener.getsockname())
        except OSError as error:
            return error.errno != errno.EADDRINUSE
    return True


def _listen(bind: str | None, port: int, option: str) -> socket.socket:
    try:
        if bind is None:
            if socket.has_dualstack_ipv6():
                with contextlib.suppress(OSError):
                    return socket.create_server(
                        ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
                    )
            return socket.create_server(("", port), backlog=_BACKLOG)
        family, _type, _protocol, _name, address = socket.getaddrinfo(
            resolvable(bind), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address, family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"port {port}" if bind is None else f"{bind} port {port}"
        hint = ""
        if error.errno == errno.EADDRINUSE:
            hint = f"; another endpoint may be running there already, or choose another with {option}"
        elif error.errno == errno.EACCES:
            hint = f"; ports below 1024 need privileges, choose another with {option}"
        elif isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            hint = "; give --bind an address of this host"
        reason = "no such name" if isinstance(error, socket.gaierror) else explain_os_error(error)
        raise EndpointError(f"cannot listen on {where}: {reason}{hint}") from error


def reachable_hosts(listener: socket.socket) -> list[str]:
    """Return the names by which other hosts may reach a listening socket; the best one first.

    A socket that is bound to one address has that name alone. Otherwise these are the addresses of the interfaces
    that are up, after the host's name if it resolves to some of them: many hosts resolve their own name to
    loopback. Link-local addresses, with this host's interface, count if there are no others.
    """
    host = str(listener.getsockname()[0])
    if host not in _ANY:
        return [format_host(listener.getsockname())]
    families = (socket.AF_INET,) if listener.family == socket.AF_INET else (socket.AF_INET, socket.AF_INET6)
    addresses = _interface_addresses(families)
    name = socket.gethostname()
    names = _resolve(name)
    reachable = [*([name] if names and names <= set(addresses) else []), *addresses]
    return reachable or _link_local_hosts(families) or [name]


def spell_for_client(peer: str) -> str:
    """Return a host, with a port or without, for another host: its own interface leads to a link-local one."""
    return _ZONE.sub(f"%{CLIENT_INTERFACE}", peer)


def _link_local_hosts(families: tuple[socket.AddressFamily, ...]) -> list[str]:
    with contextlib.suppress(OSError):
        return read_link_local_hosts() if socket.AF_INET6 in families else []
    return []


def _interface_addresses(families: tuple[socket.AddressFamily, ...]) -> list[str]:
    """Return this host's addresses: first those towards the internet, then those of all interfaces."""
    addresses = [address for family in families if (address := _default_address(family)) is not None]
    with contextlib.suppress(OSError):
        versions = {6 if family is socket.AF_INET6 else 4 for family in families}
        addresses += [address for address in read_addresses() if address.version in versions]
    usable = [address for address in addresses if not (address.is_loopback or address.is_link_local)]
    return list(dict.fromkeys(map(str, usable)))


def _default_address(family: socket.AddressFamily) -> IpAddress | None:
    """Return the address from which packets leave by the default route; None without one. It sends nothing."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((_DOCUMENTATION[family], 9))
        return ip_address(sock.getsockname()[0])
    return None


def _resolve(name: str) -> set[str]:
    """Return the addresses of a name; none if the resolver fails or takes long."""
    addresses: set[str] = set()

    def look_up() -> None:
        with contextlib.suppress(OSError, UnicodeError):
            addresses.update(str(info[4][0]) for info in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM))

    thread = threading.Thread(target=look_up, name="resolver", daemon=True)
    if start_if_possible(thread):
        thread.join(_RESOLVE_DEADLINE_S)
    return set() if thread.is_alive() else addresses


def format_host(address: tuple[Any, ...]) -> str:
    """Return the host of a socket address: IPv4 in its own notation, link-local with its interface."""
    host = str(address[0])
    scope = address[3] if len(address) == _IPV6_PARTS else 0
    if not scope or "%" in host:
        return unmap_ip_address(host)
    try:
        return f"{host}%{socket.if_indextoname(scope)}"
    except OSError:  # the interface has just gone
        return f"{host}%{scope}"
