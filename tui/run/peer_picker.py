"""The dialog to choose a far end: typed, or from a list of peers.

Known peers are marked by whether they answer. Endpoints that announce themselves on this LAN are added as they are
found. Nothing is sent to those: anybody can announce any name and address.

Suggestions come from the run log, the user's ssh configuration and the announcements. All are untrusted text:
anything that is not a valid peer is left out.
"""

import asyncio
import logging
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ...discovery.announcement import FoundEndpoint
from ...engine.lab.link_spec import LAB_NETWORK
from ...engine.model.errors import InvalidKeyError, LinkgaugeError, PlanError
from ...engine.model.ip_address import canonical_host
from ...engine.model.peer import Peer
from ...engine.model.shared_key import KEY_VARIABLE, SharedKey
from ...engine.results.run_log import RunEntry
from ...mesh.plan import GROUP_PREFIX
from ..kit.drawing.styles import BAD, GOOD, MUTED
from ..kit.screens.prompts import TextPrompt
from ..kit.widgets.typed_input import TextField
from ..session.credentials import parse_pasted_peer
from ..words import numbers
from ..words.redaction import REDACTION
from .run_services import RunServices

MAX_OF_SOURCE: Final = 12
_MAX_FILE_BYTES: Final = 256 * 1024
_WILDCARDS: Final = frozenset("*?!")
_QUERY_TIMEOUT_S: Final = 3.0
_LISTEN_S: Final = 10.0  # for announcements: an endpoint answers within a second; its host may have been busy
_MAX_PEERS: Final = 1_000  # of the run log: some are this machine, or a lab that is gone
# A key that `linkgauge endpoint` or `openssl rand -hex` has made: no host has such a name.
_NEW_KEY: Final = re.compile(r"k(?=[^A-Z]*[A-Z])[A-Za-z0-9_-]{32}|[0-9a-f]{32,}")
_log = logging.getLogger(__name__)
_HINT: Final = (
    "HOST or HOST:PORT where `linkgauge endpoint` runs, or the command that it printed; ssh://HOST, if Python 3.11 "
    "is there; iperf3://HOST where `iperf3 -s` runs; librespeed://HOST or ndt7://HOST; or loopback"
)


@dataclass(frozen=True, slots=True)
class KnownPeer:
    """A far end as the user would type it, and the source of the suggestion."""

    text: str
    source: str
    is_announced: bool = False

    @property
    def can_query(self) -> bool:
        """Whether its host can be queried without starting anything there, as ssh would.

        Another program has no description, and iperf3 would take the query for a test that broke off. Any address
        can be announced: only the user decides to connect to it.
        """
        peer = Peer.parse(self.text)
        return not self.is_announced and peer.ssh is None and not peer.is_foreign and not peer.is_loopback


class PeerPicker(TextPrompt):
    """A prompt for a peer, with the known peers below it. It answers the peer as text, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "go(-1)", show=False, priority=True),
        Binding("down", "go(1)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    PeerPicker {
        & > Vertical { width: 86; }
        & OptionList { height: auto; max-height: 12; border: none; background: $surface; padding: 0;
                       margin: 0 0 1 0; scrollbar-size-vertical: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, peer: Peer, services: RunServices) -> None:
        super().__init__("connect to a remote host", peer.shown, _HINT, self._find_peer_problem)
        self._current = peer
        self._services = services
        self._known: list[KnownPeer] = []

    def compose(self) -> ComposeResult:
        """Compose the input line, the known peers and the hint."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("↑ ↓ known hosts   enter connect   esc back")
            yield TextField(self._value, select_on_focus=True, compact=False)
            yield OptionList(markup=False)
            yield Static(Content(self._hint), markup=False)

    def on_mount(self) -> None:
        """List the known peers and query them in the background."""
        self.query_one(OptionList).can_focus = False
        self.run_worker(self._list_known(), exit_on_error=False)

    def peer_of(self, text: str) -> Peer:
        """Return the peer of an address or a pasted command. A key alone is for the current peer.

        Raises PlanError and InvalidKeyError.
        """
        text = text.strip()
        key = text.removeprefix(f"{KEY_VARIABLE}=")
        if _NEW_KEY.fullmatch(key) or (key != text and not any(map(str.isspace, key))):
            if self._current.is_loopback:
                raise InvalidKeyError("a key alone names no host: paste the whole command of the endpoint")
            return self._current.with_key(SharedKey(key))
        return parse_pasted_peer(text)

    def _find_peer_problem(self, text: str) -> str | None:
        try:
            self.peer_of(text)
        except (PlanError, InvalidKeyError) as error:
            return numbers.sanitize(str(error))
        return None

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer the peer that was clicked."""
        self.dismiss(self._known[event.option_index].text)

    def action_go(self, by: int) -> None:
        """Move in the list, and copy the highlighted peer into the input line."""
        options = self.query_one(OptionList)
        if self._known:
            index = options.highlighted
            index = (0 if by > 0 else -1) if index is None else index + by
            options.highlighted = index % len(self._known)
            field = self.query_one(TextField)
            field.value = self._known[options.highlighted].text
            field.cursor_position = len(field.value)

    async def _list_known(self) -> None:
        known = await asyncio.to_thread(_load_known_peers, self._services)
        self._known = known
        options = self.query_one(OptionList)
        options.add_options([Option(_line(peer, "◌" if peer.can_query else " ", MUTED)) for peer in known])
        async with asyncio.TaskGroup() as group:
            group.create_task(self._list_announced())
            for index, peer in enumerate(known):
                if peer.can_query:
                    group.create_task(self._query(index, peer, options.replace_option_prompt_at_index))

    async def _list_announced(self) -> None:
        """Add the endpoints that announce themselves and are not in the list yet."""
        if self._services.find_announced is None:
            return
        given = {Peer.parse(peer.text).identity for peer in self._known}
        enough = len(self._known) + MAX_OF_SOURCE
        try:
            async with aclosing(self._services.find_announced(_LISTEN_S)) as endpoints:
                async for endpoint in endpoints:
                    for peer in announced_peers(endpoint):
                        if (identity := Peer.parse(peer.text).identity) not in given:
                            given.add(identity)
                            self._add(peer)
                    if len(self._known) >= enough:
                        return
        except OSError as error:
            _log.debug("this host has no multicast DNS: %s", error)

    def _add(self, peer: KnownPeer) -> None:
        self._known.append(peer)
        self.query_one(OptionList).add_option(Option(_line(peer, "○", MUTED)))

    async def _query(self, index: int, peer: KnownPeer, show: Callable[[int, Content], object]) -> None:
        """Query a peer, and mark its line by the result."""
        try:
            async with asyncio.timeout(_QUERY_TIMEOUT_S):
                info = await self._services.query_host_info(Peer.parse(peer.text))
        except (LinkgaugeError, TimeoutError):
            line = _line(peer, "✗", BAD, "no answer")
        else:
            line = _line(peer, "✓", GOOD, f"online, {numbers.quantity(info.cores, 'core')}")
        if self.is_attached:
            show(index, line)


def _load_known_peers(services: RunServices) -> list[KnownPeer]:
    try:
        rows: Sequence[RunEntry] = () if services.history is None else services.history.newest_of_peers(_MAX_PEERS)
    except LinkgaugeError:
        rows = ()
    return known_peers(rows, read_ssh_config(Path.home()))


def _line(peer: KnownPeer, mark: str, style: str, state: str = "") -> Content:
    REDACTION.learn_far_end(peer.text)
    details = "  ".join(part for part in (peer.source, state) if part)
    return Content.assemble((f" {mark} ", style), (f"{peer.text:<28}", "bold"), "  ", (details, MUTED))


def known_peers(rows: Iterable[RunEntry], ssh_config: str) -> list[KnownPeer]:
    """Return this machine, the peers of the run log (the newest first), and the hosts of the ssh configuration."""
    recent = recent_peers(rows)
    recent_texts = {peer.text for peer in recent}
    hosts = [KnownPeer(f"ssh://{host}", "~/.ssh/config") for host in ssh_hosts(ssh_config)]
    new_hosts = [host for host in hosts if host.text not in recent_texts and _is_peer(host.text)]
    return [KnownPeer("loopback", "this machine alone"), *recent, *new_hosts[:MAX_OF_SOURCE]]


def recent_peers(rows: Iterable[RunEntry]) -> list[KnownPeer]:
    """Return each remote peer of the log once, with its newest run. `rows` must begin with the newest."""
    peers: dict[tuple[object, ...], KnownPeer] = {}
    for row in rows:
        text = numbers.sanitize(row.peer)
        # The endpoints of a mesh have ports of their own, and end with the mesh.
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
    """Return the names after `Host` in an ssh_config that are not patterns, each once, in their order."""
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
    """Return whether a peer can outlive its run: addresses of this machine or of a lab cannot."""
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
