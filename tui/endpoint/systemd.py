"""The endpoint as a service of systemd: the listening socket of its socket activation, and notifications to it."""

import contextlib
import os
import socket
from collections.abc import MutableMapping
from typing import Final

from ...engine.model.errors import EndpointError, explain_os_error

_FIRST_FD: Final = 3  # SD_LISTEN_FDS_START, sd_listen_fds(3)


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
        raise EndpointError(f"systemd passed {count} sockets: an endpoint needs one, of both families")
    try:
        listener = socket.socket(fileno=_FIRST_FD)
        is_listening = bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError as error:
        raise EndpointError(f"the socket that systemd passed cannot be used: {explain_os_error(error)}") from error
    is_tcp = listener.family in {socket.AF_INET, socket.AF_INET6} and listener.type == socket.SOCK_STREAM
    if not (is_listening and is_tcp):
        listener.detach()
        raise EndpointError("systemd passed no listening TCP socket: use ListenStream=PORT")
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
