"""The key that two ends share: its form, the proof that an end holds it, and a near end's demands of an endpoint.

Pure: bytes in, bytes out; randomness is an argument. Both ends hold the same key and never send it. Each sends a
nonce, and the other proves the key over both nonces and every byte exchanged so far (the transcript). A proof is
therefore valid for one conversation, one role and one version of the protocol only:

    near  preamble, Hello{nonce}
    far   preamble, Challenge{nonce}
    near  Proof     HMAC(key, "near", transcript, binding)
    far   Welcome   HMAC(key, "far", transcript, binding)

If TLS carries the conversation, `binding` is the fingerprint of the certificate: a relay between the ends has
another certificate. The near end proves first, so an endpoint reveals nothing to try keys on. control/handshake.py
carries this out.

An endpoint may accept several keys, each with a name that never crosses the wire. It tries a proof on all of them,
in a time that does not tell which one it was.

Both ends derive a shared secret from the same key and transcript, and it never crosses the wire. Two ends without a
key have an empty one.
"""

import base64
import hmac
import re
import secrets
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from .errors import InvalidKeyError

KEY_VARIABLE: Final = "LINKGAUGE_KEY"
MIN_KEY_CHARACTERS: Final = 16
MAX_KEY_CHARACTERS: Final = 1_024
MAX_KEYS: Final = 64
"""The keys of an endpoint: each proof is tried on all of them."""
MAX_NAME_CHARACTERS: Final = 63
NONCE_BYTES: Final = 32
NEAR_ROLE: Final = b"near"
FAR_ROLE: Final = b"far"
_KEY: Final = re.compile(r"[!-~]+", re.ASCII)
_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._@-]{{0,{MAX_NAME_CHARACTERS - 1}}}", re.ASCII)
_NEW_KEY_BYTES: Final = 24
_LINK_BYTES: Final = 18  # 24 characters, which keep a QR code small
_LENGTH: Final = struct.Struct(">I")


class SharedKey:
    """The key that both ends share. Only `reveal` returns its text: nothing prints it by accident.

    `name` tells an endpoint whose key it is; "" is a key without a name.
    """

    __slots__ = ("_secret", "_text", "name")

    def __init__(self, text: str, name: str = "") -> None:
        if not MIN_KEY_CHARACTERS <= len(text) <= MAX_KEY_CHARACTERS or not _KEY.fullmatch(text):
            raise InvalidKeyError(
                f"a key is {MIN_KEY_CHARACTERS} to {MAX_KEY_CHARACTERS} letters, digits and signs without spaces; "
                "make one with: openssl rand -hex 24"
            )
        if name and not _NAME.fullmatch(name):
            raise InvalidKeyError(
                f"a name of a key is 1 to {MAX_NAME_CHARACTERS} letters, digits and . _ - @, and begins with a "
                "letter or a digit"
            )
        self.name = name
        self._text = text
        self._secret = mac(b"linkgauge key", text.encode())

    @classmethod
    def generate(cls, random_text: Callable[[int], str] = secrets.token_urlsafe, *, name: str = "") -> Self:
        """Return a new random key."""
        # It begins with a letter: no shell or command line takes it for an option.
        return cls("k" + random_text(_NEW_KEY_BYTES), name)

    def __repr__(self) -> str:
        return "Key(…)"

    def reveal(self) -> str:
        """Return the text, for the other end."""
        return self._text

    def link_token(self) -> str:
        """Return the token of the links that stand for this key: whoever has one cannot compute the key from it."""
        digest = hmac.digest(self._secret, b"link of a browser", "sha256")
        return base64.urlsafe_b64encode(digest[:_LINK_BYTES]).decode("ascii")

    def prove(self, role: bytes, context: "AuthContext") -> bytes:
        """Return the proof that its sender holds the key, valid for one role in one conversation."""
        return hmac.digest(self._secret, _proof_text(role, context), "sha256")

    def has_made(self, proof: bytes, text: bytes) -> bool:
        """Return whether a proof is this key's of a text, in a time that reveals nothing about either."""
        return constant_time_equal(hmac.digest(self._secret, text, "sha256"), proof)

    def derive_shared_secret(self, context: "AuthContext") -> bytes:
        """Return the secret that only the two ends of this conversation can compute."""
        return mac(self._secret, b"session", context.transcript, context.channel_binding)


@dataclass(frozen=True, slots=True)
class AuthContext:
    """A conversation to prove a key over: the bytes before the first proof, and the TLS fingerprint."""

    transcript: bytes
    channel_binding: bytes = b""


@dataclass(frozen=True, slots=True)
class Access:
    """A near end's key for an endpoint, and its demands there.

    With a `key` it refuses an endpoint that does not ask for one, unless `may_be_open`. `fingerprint` is
    the SHA-256 of the certificate that the endpoint must have: the control connection is then TLS.
    """

    key: SharedKey | None = None
    may_be_open: bool = False
    fingerprint: bytes | None = None


NO_ACCESS: Final = Access()


def find_proved(keys: Sequence[SharedKey], role: bytes, context: AuthContext, proof: bytes) -> SharedKey | None:
    """Return the key of these that a proof is made with; None if it is none of them.

    Every key is tried, whichever one it is: the time reveals no more than their number.
    """
    text = _proof_text(role, context)
    return next(iter([key for key in keys if key.has_made(proof, text)]), None)


def mac(key: bytes, *parts: bytes) -> bytes:
    """Return the HMAC-SHA-256 of parts. Each goes in with its length, so different lists are different bytes."""
    return hmac.digest(key, _join(parts), "sha256")


def _proof_text(role: bytes, context: AuthContext) -> bytes:
    """Return the bytes that a proof of any key is the HMAC of."""
    return _join((b"proof", role, context.transcript, context.channel_binding))


def _join(parts: Sequence[bytes]) -> bytes:
    return b"".join(_LENGTH.pack(len(part)) + part for part in parts)


def constant_time_equal(expected: bytes, received: bytes) -> bool:
    """Return whether both are equal, in a time that reveals nothing about either."""
    return hmac.compare_digest(expected, received)
