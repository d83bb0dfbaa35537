"""One connection to an HTTP server: requests, and answers that are read by h11 and bounded in size and time."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ... import __version__
from ..model.errors import ConnectionClosed, RemoteProtocolError, SilentPeer, explain_os_error, make_printable
from .http_wire import Wire

if TYPE_CHECKING:
    import h11

ANSWER_DEADLINE_S: Final = 5.0
MAX_HEAD_BYTES: Final = 32 * 1024
MAX_BODY_BYTES: Final = 64 * 1024
_MOST_SHOWN: Final = 100
_SWITCHING: Final = 101
_FIRST_WORD: Final = b"HTTP/1."
_PIECE_BYTES: Final = 16 * 1024
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request. The names of headers are lower-case, and their values printable."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    def header(self, name: str) -> str:
        """Return the value of a header; empty if there is none."""
        return self.headers.get(name, "")

    @property
    def keeps_connection(self) -> bool:
        """Whether the connection is open for another request."""
        return self.header("connection").lower() != "close"


def request_head(authority: str, method: str, target: str, headers: Headers = ()) -> bytes:
    """Return a request without its body. All parts are this program's own, or were checked as they were typed."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {authority}", f"User-Agent: linkgauge/{__version__}"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers), "", ""]).encode("ascii")


class HttpConnection:
    """A connection. Its answers come in the order of the requests."""

    def __init__(self, wire: Wire, authority: str) -> None:
        self.wire = wire
        self._authority = authority

    def close(self) -> None:
        """Close this process's part of the connection."""
        self.wire.close()

    async def request(self, method: str, target: str, headers: Headers = (), body: bytes = b"") -> Answer:
        """Send a request and return its whole answer.

        Raises:
            ConnectionClosed: The connection ended, or SilentPeer: no whole answer came in time.
            RemoteProtocolError: It is not HTTP, or too long.
        """
        await self.send(request_head(self._authority, method, target, headers) + body)
        return await self.read_answer(method)

    async def begin(self, method: str, target: str, headers: Headers = ()) -> Answer:
        """Send a request and return the head of its answer; what follows stays unread. Raises as `request`."""
        await self.send(request_head(self._authority, method, target, headers))
        return await self.read_answer(method, headers, is_whole=False)

    async def send(self, data: bytes) -> None:
        """Send; raise ConnectionClosed if the connection ended, SilentPeer if the server does not read."""
        try:
            async with asyncio.timeout(ANSWER_DEADLINE_S):
                await self.wire.send(data)
        except TimeoutError as error:
            raise SilentPeer("it does not read") from error
        except OSError as error:
            raise ConnectionClosed(explain_os_error(error)) from error

    async def read_answer(
        self,
        method: str,
        headers: Headers = (),
        *,
        is_whole: bool = True,
        deadline_s: float | None = ANSWER_DEADLINE_S,
    ) -> Answer:
        """Return the next answer, to a request that was sent. Raises as `request`."""
        import h11

        reading = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        reading.send(h11.Request(method=method, target="/", headers=[("Host", "h"), *headers]))
        reading.send(h11.EndOfMessage())
        try:
            async with asyncio.timeout(deadline_s):
                return await _Reading(self.wire, reading, is_whole=is_whole).read()
        except TimeoutError as error:
            raise SilentPeer(f"no whole answer came within {deadline_s:g} s") from error
        except h11.RemoteProtocolError as error:
            raise RemoteProtocolError(
                f"its answer is not HTTP ({make_printable(str(error))[:_MOST_SHOWN]})"
            ) from error
        except OSError as error:
            raise ConnectionClosed(explain_os_error(error)) from error


class _Reading:
    """One answer as far as it has come."""

    def __init__(self, wire: Wire, reading: "h11.Connection", *, is_whole: bool) -> None:
        self._wire, self._reading, self._is_whole = wire, reading, is_whole
        self._head: Answer | None = None
        self._body = bytearray()
        self._read_bytes = 0

    async def read(self) -> Answer:
        """Read to its end, or to the end of its head, and take no byte more."""
        while True:
            piece = (await self._wire.peek())[:_PIECE_BYTES]  # payload may have come behind the head
            if not piece and self._head is None:
                raise ConnectionClosed("it closed the connection")
            if not self._read_bytes and not piece.startswith(_FIRST_WORD[: len(piece)]):
                raise RemoteProtocolError("its answer is not HTTP")
            self._read_bytes += len(piece)
            if self._read_bytes > MAX_HEAD_BYTES + MAX_BODY_BYTES:
                raise RemoteProtocolError(f"an answer of more than {MAX_HEAD_BYTES + MAX_BODY_BYTES} bytes")
            self._reading.receive_data(piece)
            is_over = self._handle_events()
            surplus = len(self._reading.trailing_data[0]) if is_over else 0
            await self._wire.take(len(piece) - surplus)
            if is_over and self._head is not None:
                return Answer(self._head.status, self._head.headers, bytes(self._body))

    def _handle_events(self) -> bool:
        """Handle what has come; return whether the part of the answer that is wanted is complete."""
        import h11

        while True:
            event = self._reading.next_event()
            if isinstance(event, h11.InformationalResponse) and event.status_code == _SWITCHING:
                self._head = _answer(event)
                return True
            if isinstance(event, h11.Response):
                self._head = _answer(event)
                if not self._is_whole:
                    return True
            elif isinstance(event, h11.Data):
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return True
            elif not isinstance(event, h11.InformationalResponse):  # it needs more, or the connection has ended
                return False


def _answer(event: Any) -> Answer:
    headers = {
        name.decode("latin-1"): make_printable(value.decode("latin-1"))[:_MOST_SHOWN]
        for name, value in event.headers
    }
    return Answer(event.status_code, headers)
