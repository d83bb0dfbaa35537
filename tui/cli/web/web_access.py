"""Access to the page: the token in its path, and the checks of Host and Origin.

The server listens on loopback alone. Three others still reach it there: another user of this host, a page of
another origin in the user's browser, and somebody else's name that resolves to 127.0.0.1 (DNS rebinding). The
token is in the path and in no cookie, which a browser would send to every port of this host. Pure: knows no socket.
"""

import hmac
import secrets
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

from ....engine.model.errors import UsageError

_LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_TOKEN_BYTES: Final = 24
_MAX_HEADER: Final = 300
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """The address by which a reverse proxy offers the page: `https://gauge.example.org`."""

    scheme: str
    host: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a scheme and a host with its port, if any. Raises UsageError."""
        allowed = f"--public-url {text[:80]!r} is invalid; give https://HOST or https://HOST:PORT, without a path"
        try:
            url = urlsplit(text.strip())
            port = url.port
        except ValueError as error:
            raise UsageError(allowed) from error
        is_bare = url.path in {"", "/"} and not (url.query or url.fragment or "@" in url.netloc)
        if url.scheme not in _DEFAULT_PORTS or not url.hostname or not is_bare or not text.isprintable():
            raise UsageError(allowed)
        name = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
        return cls(url.scheme, name if port in {None, _DEFAULT_PORTS[url.scheme]} else f"{name}:{port}")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}"


@dataclass(frozen=True, slots=True)
class WebAccess:
    """The rules by which a request is answered. A new token is made for each start."""

    public_url: PublicUrl | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES), repr=False)

    def find_refusal(self, host: str, origin: str | None, token: str, *, is_websocket: bool) -> str | None:
        """Return why a request is refused; None if it is answered.

        Args:
            host: the Host header.
            origin: the Origin header; None without one.
            token: the token of the path.
            is_websocket: whether the request opens a WebSocket, for which a browser always names the origin.
        """
        if self.origin_of(host) is None:
            return "it is not served by this name; see --public-url"
        if origin is None and is_websocket:
            return "no browser opens a WebSocket without an origin"
        if origin is not None and not self._is_own_origin(host, origin):
            return "the request comes from another page"
        # compare_digest takes text of ASCII only.
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return "the address lacks the token, or has the one of an earlier start; copy it from the terminal"
        return None

    def origin_of(self, host: str) -> str | None:
        """Return the origin of the page that a Host header asks for; None for a name that is not served."""
        host = host.lower()
        if len(host) > _MAX_HEADER:
            return None
        if self.public_url is not None and host == self.public_url.host:
            return str(self.public_url)
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host, "80"
        # A tunnel may end at another port than the server's.
        if name not in _LOOPBACK_NAMES or not (port.isascii() and port.isdigit()):
            return None
        # A proxy that does not keep the Host header asks for loopback; its page has the public address.
        return f"http://{host}"

    def _is_own_origin(self, host: str, origin: str) -> bool:
        own = {self.origin_of(host)} if self.public_url is None else {self.origin_of(host), str(self.public_url)}
        return len(origin) <= _MAX_HEADER and origin.lower() in own
