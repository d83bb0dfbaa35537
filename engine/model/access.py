"""Who may use an endpoint: a shared key, proved by both ends, and tokens that are good for one connection each.

Pure: bytes in, bytes out; chance is an argument. Both ends hold the same key and never send it. Each gives the
other a nonce to prove it over, together with everything that both have said until then (the transcript), so that
a proof is good for one conversation, one role and one version of the protocol, and for nothing else:

    near  preamble, Hello{nonce}
    far   preamble, Challenge{nonce}
    near  Proof     HMAC(key, "near", transcript, binding)
    far   Welcome   HMAC(key, "far", transcript, binding)

`binding` is the fingerprint of the certificate where TLS carries the conversation: whoever stands between the
ends with a certificate of their own has another one. The near end proves first, so that a stranger who asks an
endpoint learns nothing to try keys on. The secret of a run comes out of the same key and transcript and never
crosses the wire; each connection of the run shows a token that is made of it.
"""

import hmac
import re
import secrets
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from .errors import InvalidKeyError

MIN_KEY_CHARACTERS: Final = 16
MAX_KEY_CHARACTERS: Final = 1_024
_KEY: Final = re.compile(r"[!-~]+", re.ASCII)
_NEW_KEY_BYTES: Final = 24
_LENGTH: Final = struct.Struct(">I")


class SharedKey:
    """What both ends share. Its text is only ever had by asking for it."""

    __slots__ = ("_secret", "_text")

    def __init__(self, text: str) -> None:
        if not MIN_KEY_CHARACTERS <= len(text) <= MAX_KEY_CHARACTERS or not _KEY.fullmatch(text):
            raise InvalidKeyError(
                f"a key is {MIN_KEY_CHARACTERS} to {MAX_KEY_CHARACTERS} letters, digits and signs without blanks; "
                "make one with: openssl rand -hex 24"
            )
        self._text = text
        self._secret = mac(b"linkgauge key", text.encode())

    @classmethod
    def generate(cls, random_text: Callable[[int], str] = secrets.token_urlsafe) -> Self:
        """Return a key that nobody has had before."""
        # Its first letter is one that no shell and no command line takes for an option's.
        return cls("k" + random_text(_NEW_KEY_BYTES))

    def __repr__(self) -> str:
        return "Key(…)"

    def reveal(self) -> str:
        """Return the text, for the one who is to give it to the other end."""
        return self._text

    def prove(self, role: bytes, context: "AuthContext") -> bytes:
        """Return what only a holder of the key can say in this conversation, in a role."""
        return mac(self._secret, b"proof", role, context.transcript, context.channel_binding)

    def derive_shared_secret(self, context: "AuthContext") -> bytes:
        """Return the secret that both ends of this conversation, and nobody else, now share."""
        return mac(self._secret, b"session", context.transcript, context.channel_binding)


@dataclass(frozen=True, slots=True)
class AuthContext:
    """What both ends have said before the first proof, to the byte, and what carries it."""

    transcript: bytes
    channel_binding: bytes = b""


@dataclass(frozen=True, slots=True)
class Access:
    """What a near end brings to an endpoint, and asks of it.

    With a `key` it refuses an endpoint that does not ask for one, unless `may_be_open`. `fingerprint` is
    the SHA-256 of the certificate that the endpoint must have: the control connection is then TLS.
    """

    key: SharedKey | None = None
    may_be_open: bool = False
    fingerprint: bytes | None = None


NO_ACCESS: Final = Access()


def mac(key: bytes, *parts: bytes) -> bytes:
    """Return the HMAC-SHA-256 of parts, each with its length: no two lists of parts are the same bytes."""
    return hmac.digest(key, b"".join(_LENGTH.pack(len(part)) + part for part in parts), "sha256")
