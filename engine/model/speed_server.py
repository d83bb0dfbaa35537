"""Servers for speed tests that are not linkgauge's: `librespeed://HOST[:PORT][/PATH]` and `ndt7://HOST[:PORT]`.

Pure. `librespeeds://` and `ndt7s://` are the same over TLS, as https is to http.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from .errors import PlanError

_PATH: Final = re.compile(r"(/[A-Za-z0-9._~%+,;=:@-]*)*", re.ASCII)
_MAX_PATH: Final = 200


class SpeedProtocol(StrEnum):
    """The protocol of such a server."""

    LIBRESPEED = "librespeed"
    NDT7 = "ndt7"

    @property
    def label(self) -> str:
        """Its name in a sentence."""
        return "LibreSpeed" if self is SpeedProtocol.LIBRESPEED else "NDT7"

    @property
    def server_name(self) -> str:
        """A server of it, with the article."""
        return f"{'a' if self is SpeedProtocol.LIBRESPEED else 'an'} {self.label} server"


@dataclass(frozen=True, slots=True)
class SpeedServer:
    """A LibreSpeed or NDT7 server, over TLS or not. LibreSpeed's files are below `path`, which begins with `/`."""

    protocol: SpeedProtocol
    is_tls: bool = False
    path: str = "/"

    @property
    def scheme(self) -> str:
        """The beginning of its address: `librespeed://`."""
        return f"{self.protocol}{'s' if self.is_tls else ''}://"

    @property
    def usual_port(self) -> int:
        """The port of an address that names none."""
        return 443 if self.is_tls else 80


_SERVERS: Final = tuple(SpeedServer(protocol, is_tls) for protocol in SpeedProtocol for is_tls in (False, True))


def is_speed_address(text: str) -> bool:
    """Return whether the text is the address of such a server."""
    return _find_scheme(text) is not None


def split_speed_address(text: str) -> tuple[SpeedServer, str] | None:
    """Return the server and the `HOST[:PORT]` of an address; None if it has none of these schemes.

    Raises PlanError for a path that it cannot have.
    """
    found = _find_scheme(text)
    if found is None:
        return None
    place, slash, rest = text.strip()[len(found.scheme) :].partition("/")
    path = slash + rest.rstrip("/")
    is_librespeed = found.protocol is SpeedProtocol.LIBRESPEED
    form = f"{found.scheme}HOST[:PORT]{'[/PATH]' if is_librespeed else ''}"
    is_allowed = path in {"", "/"} or (is_librespeed and len(path) <= _MAX_PATH and _PATH.fullmatch(path))
    if not place or "@" in place or not is_allowed:
        raise PlanError("peer", repr(text), f"give {form}")
    return SpeedServer(found.protocol, found.is_tls, f"{path.rstrip('/')}/"), place


def _find_scheme(text: str) -> SpeedServer | None:
    lower = text.strip().lower()
    return next((server for server in _SERVERS if lower.startswith(server.scheme)), None)
