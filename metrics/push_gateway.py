"""Metrics sent to a Pushgateway: each push is one PUT, which replaces the earlier metrics of its group there.

The user gives the gateway's address. Its answer is not trusted: it has a deadline and a maximum size.
prometheus_client's own push has neither: with a timeout of 2 s, a gateway that sent a byte twice a second held it
for as long as the trial lasted (20 s), and its thread cannot be ended.
"""

import asyncio
import contextlib
import socket
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from ..engine.model.errors import OutputError, PlanError, explain_os_error, make_printable

DEADLINE_S: Final = 10.0
_MAX_LINE_BYTES: Final = 4_096
_JOB: Final = "linkgauge"
_REMEDY: Final = "give the gateway's address, such as http://gateway:9091"
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Gateway:
    """A Pushgateway, as `parse_gateway` reads its address."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host and the port, as in HTTP."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def parse_gateway(text: str) -> Gateway:
    """Return the gateway at an address; raise PlanError if it cannot be used.

    A name or password in the address is refused: it would be in the process list of this host.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise PlanError("--push", repr(text), _REMEDY) from error
    is_plain = text.isascii() and text.isprintable() and " " not in text
    if not is_plain or parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.query or parts.fragment:
        raise PlanError("--push", repr(text), _REMEDY)
    if parts.username is not None or parts.password is not None:
        raise PlanError("--push", "an address with a name or password", "leave these out: others see command lines")
    return Gateway(parts.scheme, parts.hostname, port or _DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/"))


def group_path(labels: dict[str, str]) -> str:
    """Return the path of a group at a gateway: its job and these labels."""
    pairs = {"job": _JOB, **labels}
    return "/metrics/" + "/".join(
        f"{quote(name, safe='')}/{quote(value, safe='')}" for name, value in pairs.items()
    )


async def push(gateway: Gateway, path: str, body: bytes, content_type: str) -> None:
    """Replace the metrics of a group.

    Args:
        gateway: the gateway.
        path: the path of the group, from `group_path`.
        body: the metrics as text.
        content_type: the format of the text.

    Raises:
        OutputError: the gateway refused them, or did not answer within DEADLINE_S.
        OSError: the gateway cannot be reached.
    """
    try:
        async with asyncio.timeout(DEADLINE_S):
            status = await _put(gateway, path, body, content_type)
    except TimeoutError as error:
        raise OutputError(f"no answer within {DEADLINE_S:g} s") from error
    except ssl.SSLError as error:
        raise OutputError(f"its certificate or TLS cannot be used: {error.reason or error}") from error
    except socket.gaierror as error:
        raise OutputError(explain_os_error(error, gateway.host)) from error
    except (EOFError, ValueError) as error:
        raise OutputError("it does not answer as an HTTP server") from error
    version, _, rest = status.partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise OutputError("it does not answer as an HTTP server")
    if not rest.startswith("2"):
        raise OutputError(f"it answers {make_printable(rest[:80].strip())}")


async def _put(gateway: Gateway, path: str, body: bytes, content_type: str) -> str:
    """Send the request; return the first line of the answer."""
    head = (
        f"PUT {gateway.path}{path} HTTP/1.1\r\nHost: {gateway.authority}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    context = ssl.create_default_context() if gateway.scheme == "https" else None
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port, ssl=context, limit=_MAX_LINE_BYTES)
    try:
        writer.write(head.encode("ascii") + body)
        with contextlib.suppress(ConnectionError):  # a gateway that answers before it has read everything
            await writer.drain()
        return (await reader.readuntil(b"\r\n")).decode("latin-1")
    except asyncio.LimitOverrunError as error:
        raise ValueError from error
    finally:
        writer.transport.abort()
