"""The part of an endpoint that serves browsers: its configuration, its listening socket and its links."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from ....engine.far.listener import listen, reachable_hosts
from ....engine.model.ip_address import is_loopback_address
from ....engine.model.limits import Limits
from ....engine.model.shared_key import SharedKey
from ....engine.model.texts.shell_commands import shell_command

WELL_KNOWN: Final = ".well-known/nq"
"""The end of the address that a client of networkQuality is given (draft-ietf-ippm-responsiveness)."""
PLAIN_TEXT = (
    "without TLS, others on the network can read the link and the results, and start tests with that link; "
    "--tls-cert and --tls-key encrypt them"
)


@dataclass(frozen=True, slots=True)
class BrowserConfig:
    """The address of the page, as the command line gives it; without a host it is the endpoint's."""

    host: str | None
    port: int

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> "BrowserConfig":
        """Return the configuration from values of JSON."""
        return cls(**values)


@dataclass(frozen=True, slots=True)
class RoomConfig:
    """An app's wait for a device: the page's address, the files of its certificate, and who is served."""

    page: BrowserConfig
    tls: tuple[str, str] | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class BrowserSetup:
    """The resources of the service: its listening socket. With `is_open` no link needs a key."""

    listener: socket.socket
    is_open: bool
    has_tls: bool

    @property
    def asks_for_key(self) -> bool:
        """Whether a link carries a key: not on loopback, where the endpoint asks for none either."""
        return not (self.is_open or is_loopback_address(self.listener.getsockname()[0]))

    def links(self, keys: Sequence[SharedKey] | None) -> list[str]:
        """Return the links for other hosts, the best one first, with the first key if they carry one.

        It may ask the resolver for this host's name, for up to a second.
        """
        port = self.listener.getsockname()[1]
        path = f"{keys[0].link_token()}/" if self.asks_for_key and keys else ""
        return [f"{self._scheme}://{_spell(host)}:{port}/{path}" for host in reachable_hosts(self.listener)]

    @property
    def quality_problem(self) -> str | None:
        """What is missing for clients of networkQuality, and the remedy; None if they are served."""
        if not self.has_tls:
            return "networkQuality needs HTTPS; start the endpoint with --tls-cert and --tls-key"
        if find_spec("h2") is None:
            return "networkQuality needs HTTP/2; pip install 'linkgauge[nq]' on the endpoint's host"
        return None

    def quality_link(self, link: str) -> str | None:
        """Return the address for a client of networkQuality by the link to the page; None if it is not served."""
        return None if self.quality_problem is not None else f"{link}{WELL_KNOWN}"

    def quality_command(self, link: str) -> str | None:
        """Return the command to paste on a Mac, which need not trust the certificate; None if it is not served."""
        address = self.quality_link(link)
        return None if address is None else shell_command("networkQuality", "-k", "-C", address)

    @property
    def _scheme(self) -> str:
        return "https" if self.has_tls else "http"

    def facts(self, links: Sequence[str]) -> dict[str, Any]:
        """Return the address for programs."""
        facts = {"port": self.listener.getsockname()[1], "asks_for_key": self.asks_for_key, "links": list(links)}
        quality = [self.quality_link(link) for link in links if self.quality_problem is None]
        return {**facts, "networkquality": quality} if quality else facts


def _spell(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def prepare_browser(config: BrowserConfig, bind: str | None, *, is_open: bool, has_tls: bool) -> BrowserSetup:
    """Listen; raise EndpointError if that address cannot be used.

    Args:
        config: The configuration of the service.
        bind: The endpoint's address to listen on; None for every address.
        is_open: Whether the endpoint serves everybody.
        has_tls: Whether the endpoint has a certificate.
    """
    listener = listen(config.host or bind, config.port, option="--http")
    return BrowserSetup(listener, is_open, has_tls)
