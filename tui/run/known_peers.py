"""Suggestions for the far end: peers of the run log, hosts of the user's ssh configuration, announced endpoints.

Only `read_ssh_config` does I/O. All sources are untrusted text: anything that is no valid peer is left out.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from ...discovery.announcement import FoundEndpoint
from ...engine.lab.link_spec import LAB_NETWORK
from ...engine.model.errors import PlanError
from ...engine.model.ip_address import canonical_host
from ...engine.model.peer import Peer
from ...engine.results.run_log import RunEntry
from ...mesh.plan import GROUP_PREFIX
from ..words import numbers

MAX_OF_SOURCE: Final = 12
_MAX_FILE_BYTES: Final = 256 * 1024
_WILDCARDS: Final = frozenset("*?!")


@dataclass(frozen=True, slots=True)
class KnownPeer:
    """A far end as a person would type it, and where it is known from."""

    text: str
    source: str
    is_announced: bool = False

    @property
    def can_query(self) -> bool:
        """Whether its host information can be queried without starting anything there, as ssh would.

        An iperf3 server has none, and would take the query for a test that broke off. Anybody can announce any
        address: only a person decides to connect to it.
        """
        peer = Peer.parse(self.text)
        return not self.is_announced and peer.ssh is None and peer.iperf3 is None and not peer.is_loopback


def known_peers(rows: Iterable[RunEntry], ssh_config: str) -> list[KnownPeer]:
    """Return this machine, the peers of the run log (the newest first), and the hosts of the ssh configuration."""
    recent = recent_peers(rows)
    recent_texts = {peer.text for peer in recent}
    hosts = [KnownPeer(f"ssh://{host}", "~/.ssh/config") for host in ssh_hosts(ssh_config)]
    new_hosts = [host for host in hosts if host.text not in recent_texts and _is_peer(host.text)]
    return [KnownPeer("loopback", "this machine alone"), *recent, *new_hosts[:MAX_OF_SOURCE]]


def recent_peers(rows: Iterable[RunEntry]) -> list[KnownPeer]:
    """Return each remote peer of the log once, with its newest run. `rows` must have the newest first."""
    peers: dict[tuple[object, ...], KnownPeer] = {}
    for row in rows:
        text = numbers.sanitize(row.peer)
        # The endpoints of a mesh have ports of their own, and end with it.
        if not _is_peer(text) or (row.group or "").startswith(GROUP_PREFIX):
            continue
        peer = Peer.parse(text)
        if peer.identity not in peers and _may_answer(peer):
            verdict = f", {numbers.verdict(row.verdict)}" if row.verdict else ""
            peers[peer.identity] = KnownPeer(text, f"{(row.started_utc or '')[:10]}{verdict}".strip(", "))
    return list(peers.values())[:MAX_OF_SOURCE]


def announced_peers(endpoint: FoundEndpoint) -> list[KnownPeer]:
    """Return the peers of an announcement: the endpoint, and its address for clients of iperf3, if any."""
    source = f"announces itself as {endpoint.name}"
    needs = [name for name, wanted in (("a key", endpoint.wants_key), ("TLS", endpoint.wants_tls)) if wanted]
    note = f", wants {' and '.join(needs)}" if needs else ""
    peers = [KnownPeer(str(endpoint.peer), source + note, is_announced=True)]
    if endpoint.iperf3_peer is not None:
        peers.append(KnownPeer(str(endpoint.iperf3_peer), source, is_announced=True))
    return [peer for peer in peers if _is_peer(peer.text)]


def ssh_hosts(config: str) -> list[str]:
    """Return the names after `Host` in an ssh_config that are no patterns, each once, in their order."""
    hosts: dict[str, None] = {}
    for line in config.splitlines():
        keyword, _, rest = line.strip().replace("=", " ", 1).partition(" ")
        if keyword.lower() == "host":
            hosts.update(dict.fromkeys(name for name in _split(rest) if name and not _WILDCARDS & set(name)))
    return list(hosts)


def read_ssh_config(home: Path) -> str:
    """Return the text of the user's ssh configuration; empty if it cannot be read."""
    try:
        with (home / ".ssh" / "config").open("rb") as stream:
            return stream.read(_MAX_FILE_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _split(text: str) -> Sequence[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # a quotation without an end: ssh itself refuses the whole file
        return ()


def _may_answer(peer: Peer) -> bool:
    """Return whether a peer can outlive its run: this machine's own addresses and those of a lab do not."""
    host = canonical_host(peer.host)
    if peer.is_loopback or host == "localhost":
        return False
    try:
        address = ip_address(host)
    except ValueError:
        return True
    return not address.is_loopback and (address.version != 4 or address not in LAB_NETWORK)


def _is_peer(text: str) -> bool:
    try:
        Peer.parse(text)
    except PlanError:
        return False
    return text.isprintable()
