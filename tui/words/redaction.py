"""Stand-ins for addresses and names, so that a screen, an export or a report can go into a ticket.

The code that learns of a host or a user tells REDACTION. The edges (stdout, stderr, files, the screen) pass their
text through it. It finds IP addresses, MACs, logins of ssh and home directories in any text, but names only if it
knows them. A host keeps its stand-in, so that the two ends of a run stay told apart. Addresses of loopback stay.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from ...engine.model.errors import PlanError
from ...engine.model.peer import Peer

if TYPE_CHECKING:
    from ...engine.model.events import Started
    from ...mesh.plan import Host

VARIABLE: Final = "LINKGAUGE_REDACT"
_LOCAL_NAMES: Final = frozenset({"loopback", "localhost"})
_SHORTEST: Final = 3  # characters of a name that was cut, by which it is still known
_CUT: Final = r"[\w.:-]*…[\w.:-]*"
_OCTETS: Final = r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w])(?!\.\d)"
_MAC: Final = r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])"
_IPV6: Final = (
    r"(?<![\w:.])(?=[0-9A-Fa-f]*:[0-9A-Fa-f]*:)[0-9A-Fa-f:]{1,38}(?:[0-9A-Fa-f]|::)"
    r"(?:(?:\.\d{1,3}){3})?(?:%\w+)?(?![\w]|:[0-9A-Fa-f:])"
)
_LOGIN: Final = r"(?<=://)[^\s/@:\"']+(?=@)"
_PATTERN: Final = (
    rf"(?P<mac>{_MAC})|(?P<ip>{_OCTETS}|{_IPV6})|(?P<login>{_LOGIN})"
    r"|(?P<home>(?:(?<=/home/)|(?<=/Users/))[^/\s\"':;,)]+)"
)
# A place in a line that can have more or fewer spaces: a gap between columns, the space before a border, the end.
_GAP: Final = re.compile(r" {2,}| (?=[│┃])|$")


class Redaction:
    """The stand-ins of a process. `is_on` says whether texts get them.

    Args:
        own_name: The name of this host; None for the kernel's.
    """

    def __init__(self, own_name: str | None = None) -> None:
        self.is_on = False
        self._own_name = own_name
        self._stand_ins: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._pattern: re.Pattern[str] | None = None
        self._has_own = False
        self.reset()

    def reset(self) -> None:
        """Forget everything, as at the start of a command."""
        self.is_on = bool(os.environ.get(VARIABLE))
        self._stand_ins, self._counts, self._pattern, self._has_own = {}, {}, None, False

    def learn_host(self, *names: str | None) -> None:
        """Note the names and addresses of one host. The first part of a longer name is a name, too."""
        self._learn_own()
        self._learn("host", *_forms(names))

    def learn_peer(self, peer: Peer) -> None:
        """Note the host of a peer, and the user of a login."""
        self.learn_host(peer.host)
        self.learn_user(None if peer.ssh is None else peer.ssh.user)

    def learn_run(self, started: "Started | None") -> None:
        """Note both ends of a run."""
        if started is not None:
            self.learn_host(started.near.hostname)
            self.learn_far_end(started.peer, started.address, started.far.hostname)

    def learn_document(self, peer: str, document: Mapping[str, Any] | None) -> None:
        """Note both ends of a stored run, by its peer and its document; any of it may be missing."""
        found: Mapping[str, Any] = document or {}
        self.learn_host(_hostname(found.get("near")))
        address: Any = found.get("address")
        self.learn_far_end(peer, address if isinstance(address, str) else None, _hostname(found.get("far")))

    def learn_far_end(self, peer: str, *names: str | None) -> None:
        """Note the names of a host that a text names as a peer: `HOST:PORT`, `ssh://USER@HOST`."""
        try:
            parsed = Peer.parse(peer)
        except PlanError:
            self.learn_host(peer, *names)
        else:
            self.learn_peer(parsed)
            self.learn_host(parsed.host, *names)

    def learn_hosts(self, hosts: "Iterable[Host]") -> None:
        """Note the hosts of a mesh."""
        for host in hosts:
            self.learn_host(host.name, host.address)

    def learn_user(self, name: str | None) -> None:
        """Note the name of a user."""
        if name and name != "root":
            self._learn("user", name)

    def text(self, text: str) -> str:
        """Return a text with stand-ins, if they are wanted."""
        return self._compiled().sub(self._replace, text) if self.is_on and text else text

    def document(self, value: Any) -> Any:
        """Return a JSON value whose texts have stand-ins, if they are wanted; the names of its fields stay."""
        if not self.is_on:
            return value
        if isinstance(value, Mapping):
            items = cast("Mapping[Any, Any]", value)
            return {key: self.document(each) for key, each in items.items()}
        if isinstance(value, list | tuple):
            return [self.document(each) for each in cast("list[Any]", value)]
        return self.text(value) if isinstance(value, str) else value

    def line(self, line: str) -> str:
        """Return a line of a table or a screen with stand-ins: as long as before, and its columns stay."""
        if not self.is_on or not line.strip():
            return line
        parts: list[str] = []
        position, excess = 0, 0
        for gap in _GAP.finditer(line):
            before = line[position : gap.start()]
            text = self.text(before)
            excess += len(text) - len(before)
            width = len(gap[0])
            at_end = gap.end() == len(line)
            left = max(width - excess, 0 if at_end else 1)
            excess -= width - left
            parts += [text, " " * left]
            position = gap.end()
        return "".join(parts)[: len(line)]

    def _learn(self, kind: str, *names: str) -> None:
        known = next((self._stand_ins[name] for name in names if name in self._stand_ins), None)
        for name in dict.fromkeys(names):
            if name not in self._stand_ins:
                known = known or self._next(kind)
                self._stand_ins[name] = known
                self._pattern = None

    def _next(self, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}-{self._counts[kind]}"

    def _compiled(self) -> re.Pattern[str]:
        self._learn_own()
        if self._pattern is None:
            names = sorted((name for name in self._stand_ins if not _is_address(name)), key=len, reverse=True)
            known = "|".join(map(_name_pattern, names)) or "(?!)"
            self._pattern = re.compile(rf"(?P<cut>{_CUT})|{_PATTERN}|(?P<name>{known})")
        return self._pattern

    def _learn_own(self) -> None:
        """Note this host first, and its user."""
        if not self._has_own:
            self._has_own = True
            self._learn("host", *_forms([self._own_name or socket.gethostname()]))
            self.learn_user(os.environ.get("USER") or os.environ.get("LOGNAME"))

    def _replace(self, match: re.Match[str]) -> str:
        kind, found = match.lastgroup, match[0]
        if kind == "ip":
            return found if _is_local(found) or not _is_address(found) else self._stand_in("host", found)
        if kind == "name":
            return self._stand_ins[max((name for name in self._stand_ins if found.startswith(name)), key=len)]
        if kind == "cut":
            head, _, rest = found.partition("…")
            tail = rest.partition(":")[0]  # without a port
            is_known = len(head + tail) >= _SHORTEST
            whole = (name for name in self._stand_ins if name.startswith(head) and name.endswith(tail))
            return self._stand_ins.get(next(whole, "") if is_known else "", found)
        return self._stand_in("mac" if kind == "mac" else "user", found)

    def _stand_in(self, kind: str, found: str) -> str:
        self._learn(kind, found)
        return self._stand_ins[found]


REDACTION: Final = Redaction()
"""The stand-ins of this process."""


def _forms(names: Iterable[str | None]) -> list[str]:
    """Return the names of a host that identify it, and the first parts of those with a domain."""
    own = [name for name in names if name and not _is_local(name)]
    return own + [name.partition(".")[0] for name in own if "." in name and not _is_address(name)]


def _hostname(end: Any) -> str | None:
    """Return the name of an end in a stored document; None without one."""
    name: Any = cast("dict[str, Any]", end).get("hostname") if isinstance(end, dict) else None
    return name if isinstance(name, str) else None


def _name_pattern(name: str) -> str:
    """Return a pattern for a name, with a domain after it."""
    return f"(?<![\\w.-]){re.escape(name)}(?![\\w-])(?:\\.[A-Za-z][\\w-]*)*"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_local(text: str) -> bool:
    if text in _LOCAL_NAMES:
        return True
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
