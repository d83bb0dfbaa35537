"""Access to the page of an endpoint: the key in its link, and the checks of Host and Origin.

The token in the path stands for a key of the endpoint, and ends with it. Without keys, pages of other origins in
the user's browser must still not start tests, and neither must a name that somebody else lets resolve to this
address (DNS rebinding): so a page is served by an IP address or by this host's own name. Pure: opens no socket.
"""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final

from ....engine.model.shared_key import SharedKey, constant_time_equal

_MAX_HEADER: Final = 300
_LOCAL: Final = "localhost"


class LinkAccess:
    """The rules by which a request is answered.

    Args:
        get_keys: Returns the keys in force; None for everybody.
        has_tls: Whether the page is served over TLS.
        names: The names of this host beside its addresses.
    """

    def __init__(
        self, get_keys: Callable[[], Sequence[SharedKey] | None], *, has_tls: bool, names: Sequence[str] = ()
    ) -> None:
        self._get_keys = get_keys
        self._scheme = "https" if has_tls else "http"
        own = names or (socket.gethostname(), socket.getfqdn())
        first = {name.lower().partition(".")[0] for name in own}
        self._names = {_LOCAL, *(name.lower() for name in own), *first, *(f"{name}.local" for name in first)}

    def find_key(self, token: str) -> SharedKey | None:
        """Return the key that a link stands for; None for no link of this endpoint's."""
        found = None
        for key in self._get_keys() or ():
            if constant_time_equal(key.link_token().encode(), token.encode("utf-8", "replace")):
                found = key
        return found

    @property
    def needs_key(self) -> bool:
        """Whether a link carries a key."""
        return self._get_keys() is not None

    def find_refusal(self, host: str, origin: str | None, token: str, *, is_websocket: bool) -> str | None:
        """Return why a request is refused; None if it is answered.

        Args:
            host: The Host header.
            origin: The Origin header; None without one.
            token: The token of the path; empty without one.
            is_websocket: Whether the request opens a WebSocket, for which a browser always names the origin.
        """
        if not self._is_own_name(host):
            return "it is not served by this name; use this host's address"
        if origin is None and is_websocket:
            return "no browser opens a WebSocket without an origin"
        if origin is not None and (
            len(origin) > _MAX_HEADER or origin.lower() != f"{self._scheme}://{host.lower()}"
        ):
            return "the request comes from another page"
        if self.needs_key and self.find_key(token) is None:
            return "the link lacks the key, or has one that is not valid any more; ask for the endpoint's link"
        if token and not self.needs_key:
            return "there is nothing here; leave out the path"
        return None

    def _is_own_name(self, host: str) -> bool:
        """Return whether a Host header has an address or this host's name; a forwarded port may be another one."""
        if not host or len(host) > _MAX_HEADER:
            return False
        name, colon, port = host.lower().rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host.lower(), "80"
        if not (port.isascii() and port.isdigit()):
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True
