"""A request over HTTP/2 and the answer to it, as values. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Self

BINARY: Final = "application/octet-stream"
TEXT: Final = "text/plain; charset=utf-8"
_KNOWN: Final = {
    b":method": "method",
    b":path": "path",
    b":authority": "authority",
    b"host": "authority",  # in its place, of a proxy whose own client speaks HTTP/1.1 (RFC 9113, 8.3.1)
    b"origin": "origin",
    b"user-agent": "user_agent",
}


@dataclass(frozen=True, slots=True)
class Request:
    """The headers that count. All of them come from the client, and are not checked."""

    method: str = ""
    path: str = ""
    authority: str = ""
    origin: str | None = None
    user_agent: str = ""

    @classmethod
    def of_headers(cls, headers: Iterable[tuple[bytes, bytes]]) -> Self:
        """Return the request of these headers, of which the first of a name counts."""
        values: dict[str, str] = {}
        for name, value in headers:
            if name in _KNOWN:
                values.setdefault(_KNOWN[name], value.decode("latin-1"))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with a whole body, which HEAD does not get. With `closes` the connection ends after it."""

    status: int
    body: bytes = b""
    kind: str = BINARY
    headers: tuple[tuple[str, str], ...] = ()
    closes: bool = False
    sends_body: bool = True

    @classmethod
    def of_text(cls, status: int, text: str, retry_after_s: int | None = None, *, closes: bool = True) -> Self:
        """Return a sentence, and for 429 the seconds after which another try may succeed (RFC 9110, 10.2.3)."""
        headers = () if retry_after_s is None else (("retry-after", str(retry_after_s)),)
        return cls(status, f"linkgauge: {text}\n".encode(), TEXT, headers, closes)

    def to_method(self, method: str) -> "Answer":
        """Return it for a request with a method: to HEAD only the headers go (RFC 9110, 9.3.2)."""
        return replace(self, sends_body=False) if method == "HEAD" else self

    def header_list(self) -> list[tuple[str, str]]:
        """Return the headers as they are sent: few and short, because the answer to a probe is one packet."""
        length = str(len(self.body))
        return [
            (":status", str(self.status)),
            ("content-type", self.kind),
            ("content-length", length),
            *self.headers,
        ]
