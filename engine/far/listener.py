"""The listening socket of an endpoint: opened here, or passed on by systemd, and systemd's notifications."""

import contextlib
import errno
import os
import socket
from collections.abc import MutableMapping
from typing import Final

from ..model.errors import EndpointError

_BACKLOG: Final = 1_024
_FIRST_FD: Final = 3  # SD_LISTEN_FDS_START, sd_listen_fds(3)


def listen(bind: str | None, port: int, *, option: str = "--port") -> socket.socket:
    """Return a listening socket, without an address on all addresses of both families.

    `option` is the command-line option for the port, for the error's text. Raises EndpointError with a remedy.
    """
    try:
        if bind is None:
            if socket.has_dualstack_ipv6():
                with contextlib.suppress(OSError):
                    return socket.create_server(
                        ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
                    )
            return socket.create_server(("", port), backlog=_BACKLOG)
        family, _type, _protocol, _name, address = socket.getaddrinfo(
            bind, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"port {port}" if bind is None else f"{bind} port {port}"
        hint = ""
        if error.errno == errno.EADDRINUSE:
            hint = f"; another endpoint may be running there already, or choose another with {option}"
        elif error.errno == errno.EACCES:
            hint = f"; ports below 1024 need privileges, choose another with {option}"
        elif isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            hint = "; --bind takes an address of this host"
        raise EndpointError(f"cannot listen on {where}: {error.strerror or error}{hint}") from error


def get_inherited_listener(environment: MutableMapping[str, str]) -> socket.socket | None:
    """Return the listening socket that systemd has passed to this process; None if there is none.

    Removes the variables about it from the environment. Raises EndpointError if it is not a listening TCP socket,
    or if there are several.
    """
    pid, count = environment.pop("LISTEN_PID", ""), environment.pop("LISTEN_FDS", "")
    environment.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdigit() or int(count) < 1:
        return None
    if int(count) > 1:
        raise EndpointError(f"{count} sockets were handed over: an endpoint listens on one, of both families")
    try:
        listener = socket.socket(fileno=_FIRST_FD)
        is_listening = bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError as error:
        raise EndpointError(f"the socket that was handed over cannot be used: {error.strerror}") from error
    is_tcp = listener.family in {socket.AF_INET, socket.AF_INET6} and listener.type == socket.SOCK_STREAM
    if not (is_listening and is_tcp):
        listener.detach()
        raise EndpointError("what was handed over is no listening TCP socket: it takes ListenStream=PORT")
    listener.set_inheritable(False)
    return listener


def notify_systemd(state: str, address: str | None) -> None:
    """Send a state to the service manager (sd_notify(3)). `address` is NOTIFY_SOCKET; None sends nothing."""
    if not address:
        return
    name = "\0" + address[1:] if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.sendto(state.encode(), name)
