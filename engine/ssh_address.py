"""`ssh://[user@]host[:port]`: a host on which the far end is started, and how that is done.

Pure.
"""

import re
from dataclasses import dataclass
from typing import Final

from .errors import PlanError

SCHEME: Final = "ssh://"
_ALLOWED: Final = "give ssh://[user@]host[:port]"
# What starts with a dash would be an option of ssh's; the rest is what no name of a user or a host has.
_USER: Final = re.compile(r"[^-\s@:/\[\]][^\s@:/\[\]]{0,254}")
_HOST: Final = re.compile(r"[^-\s@:/\[\]][^\s@:/\[\]]{0,252}")
_IPV6: Final = re.compile(r"[0-9A-Fa-f:.]{2,45}(%[\w.]{1,15})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ssh:
    """How a far end is started through ssh; None is as ssh itself has it.

    `port` is ssh's own. `command` is the program with its options, as a shell would split it. `data_port` is where
    the far end listens for data connections, a free port where None; `is_through` has ssh carry those as well.
    """

    user: str | None = None
    port: int | None = None
    command: str | None = None
    data_port: int | None = None
    is_through: bool = False


def is_ssh(text: str) -> bool:
    """Return whether a peer is written as one to be started through ssh."""
    return text.strip().lower().startswith(SCHEME)


def split_address(text: str) -> tuple[str, Ssh]:
    """Return host and how to get there; raise PlanError where the text is no such address."""
    rest = text.strip()[len(SCHEME) :].removesuffix("/")
    user, at, place = rest.rpartition("@")
    if at and _USER.fullmatch(user) is None:
        raise PlanError("peer", repr(text), f"{_ALLOWED}; ssh asks for a password itself")
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        if not bracket or (port and not port.startswith(":")) or _IPV6.fullmatch(host) is None:
            raise PlanError("peer", repr(text), "write an IPv6 address as ssh://[address] or ssh://[address]:port")
        port = port[1:]
    else:
        host, _, port = place.partition(":")
        if _HOST.fullmatch(host) is None or not host.isprintable():
            raise PlanError("peer", repr(text), _ALLOWED)
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65_535):
        raise PlanError("port", repr(port), "give a number from 1 to 65535")
    return host, Ssh(user or None, int(port) if port else None)


def written(host: str, ssh: Ssh) -> str:
    """Return the address as a person writes it."""
    user = f"{ssh.user}@" if ssh.user else ""
    port = f":{ssh.port}" if ssh.port else ""
    return f"{SCHEME}{user}{f'[{host}]' if ':' in host else host}{port}"
