"""The far ends that a person may want: those of the run log, and the hosts of their ssh configuration.

Pure but for `read_ssh_config`. What stands in either is somebody's text: what is no peer is left out.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...engine.model.errors import PlanError
from ...engine.model.peer import Peer
from ...engine.results.run_log import RunRecord
from ..text import numbers

_MOST: Final = 12  # of each kind
_MOST_BYTES: Final = 256 * 1024
_PATTERN: Final = frozenset("*?!")


@dataclass(frozen=True, slots=True)
class KnownPeer:
    """A far end, as it is written, and where it is known from."""

    text: str
    source: str

    @property
    def can_query(self) -> bool:
        """Whether asking who it is leaves everything there as it is: with ssh, something would be started."""
        return not self.text.startswith("ssh://") and not Peer.parse(self.text).is_loopback


def known_peers(rows: Iterable[RunRecord], ssh_config: str) -> list[KnownPeer]:
    """Return this machine itself, the peers of kept runs, the newest first, and the hosts ssh knows by name."""
    recent = recent_peers(rows)
    known = {one.text for one in recent}
    hosts = [KnownPeer(f"ssh://{host}", "~/.ssh/config") for host in ssh_hosts(ssh_config)]
    new_hosts = [one for one in hosts if one.text not in known and _is_peer(one.text)]
    return [KnownPeer("loopback", "this machine alone"), *recent, *new_hosts[:_MOST]]


def recent_peers(rows: Iterable[RunRecord]) -> list[KnownPeer]:
    """Return each peer of the log once, with its newest run; rows come with the newest first."""
    found: dict[str, KnownPeer] = {}
    for row in rows:
        text = numbers.sanitize(row.peer)
        if text not in found and _is_peer(text) and not Peer.parse(text).is_loopback:
            verdict = f", {numbers.verdict(row.verdict)}" if row.verdict else ""
            found[text] = KnownPeer(text, f"{(row.started_utc or '')[:10]}{verdict}".strip(", "))
    return list(found.values())[:_MOST]


def ssh_hosts(config: str) -> list[str]:
    """Return the names after `Host` in an ssh_config that are no patterns, each once and in their order."""
    found: dict[str, None] = {}
    for line in config.splitlines():
        keyword, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if keyword.lower() == "host":
            found.update(dict.fromkeys(name for name in _split(rest) if name and not _PATTERN & set(name)))
    return list(found)


def read_ssh_config(home: Path) -> str:
    """Return a person's ssh configuration; empty where there is none that can be read."""
    try:
        with (home / ".ssh" / "config").open("rb") as stream:
            return stream.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _split(text: str) -> Sequence[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quotation that does not end: ssh refuses the whole file
        return ()


def _is_peer(text: str) -> bool:
    try:
        Peer.parse(text)
    except PlanError:
        return False
    return text.isprintable()
