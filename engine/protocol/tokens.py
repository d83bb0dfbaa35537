"""The tokens of data connections, and the secret of a run that they are made with.

Pure. The secret of a run is derived from the ends' shared secret (model/shared_key.py) and the frame of `Open`:
data connections open only if both ends have the same plan. Each data connection shows a token derived from the
run's secret.

Two ends without a key have an empty shared secret: an attacker who reads their control connection can compute the
tokens.
"""

import hashlib
import struct
from typing import Final

from ..model.shared_key import constant_time_equal, mac

TOKEN_BYTES: Final = 16
_SERIAL: Final = struct.Struct(">Q")
_TOKEN: Final = struct.Struct(f"{TOKEN_BYTES}s")
TICKET_BYTES: Final = _SERIAL.size + TOKEN_BYTES
WINDOW_SERIALS: Final = 1_024
_BLOCK_TOKENS: Final = 64  # a block takes about 40 µs to make
CODE_BYTES: Final = 16


class RunSecret:
    """The secret of a run: derived from the ends' shared secret, the far end's nonce and the frame of `Open`.

    `run_tag` names the run that a connection belongs to, and is public.
    """

    __slots__ = ("_secret", "run_tag")

    def __init__(self, shared_secret: bytes, run_nonce: bytes, open_frame: bytes) -> None:
        self._secret = mac(shared_secret, b"run", run_nonce, open_frame)
        self.run_tag = mac(self._secret, b"name")[:TOKEN_BYTES]

    def session_secret(self, direction: str, session: int, generation: int, window_bytes: int | None) -> bytes:
        """Return the secret of one session under one generation of settings, with the window that it asks for."""
        numbers = (_SERIAL.pack(number) for number in (session, generation, window_bytes or 0))
        return mac(self._secret, b"session", direction.encode(), *numbers)


class Tickets:
    """The tokens of one session: serial 0 for its own connection, and one for each further connection (`crr`).

    A ticket is a serial and its token. Tickets are made in blocks, with SHAKE256 keyed by HMAC: a ticket and its
    check take 1.5 µs; joining serial and token each time took 3.1, and an HMAC for each took more.
    """

    __slots__ = ("_block", "_expected", "_last", "_secret", "_tickets")

    def __init__(self, session_secret: bytes) -> None:
        self._secret = session_secret
        self._block = -1
        self._tickets: list[bytes] = []
        self._last = 0
        self._expected = b""

    def token(self, serial: int) -> bytes:
        """Return the token of a serial."""
        return self._ticket(serial)[_SERIAL.size :]

    def _ticket(self, serial: int) -> bytes:
        block, place = divmod(serial, _BLOCK_TOKENS)
        if block != self._block:
            key = mac(self._secret, b"tokens", _SERIAL.pack(block))
            tokens = _TOKEN.iter_unpack(hashlib.shake_256(key).digest(_BLOCK_TOKENS * TOKEN_BYTES))
            first = block * _BLOCK_TOKENS
            self._tickets = [_SERIAL.pack(first + place) + token for place, (token,) in enumerate(tokens)]
            self._block = block
        return self._tickets[place]

    def issue(self) -> bytes:
        """Return the next ticket."""
        self._last += 1
        return self._ticket(self._last)

    def redeem(self, ticket: bytes) -> bool:
        """Return whether the ticket is valid. Each is accepted once, in increasing order.

        A serial far ahead is refused: a stranger could make this end compute blocks of tokens.
        """
        if constant_time_equal(self._expected, ticket):  # as a rule: computed when the previous one was redeemed
            self._last += 1
        else:
            (serial,) = _SERIAL.unpack_from(ticket)
            if not 0 < serial - self._last <= _BLOCK_TOKENS or not constant_time_equal(
                self._ticket(serial), ticket
            ):
                return False
            self._last = serial
        self._expected = self._ticket(self._last + 1)
        return True


class ListenerProof:
    """The proofs of both ends of a `crr` session about its listener, for one nonce and one port.

    The requesting end sends the nonce on the session's own connection, and nothing to the port before the listener
    has sent `of_listener` from there. `of_requester` is its answer.
    """

    __slots__ = ("of_listener", "of_requester")

    def __init__(self, session_secret: bytes, nonce: bytes, port: int) -> None:
        parts = nonce, _SERIAL.pack(port)
        self.of_listener = mac(session_secret, b"crr listener", *parts)
        self.of_requester = mac(session_secret, b"crr requester", *parts)


class SerialWindow:
    """A window of serial numbers: each is taken once, in any order, as in IPsec (RFC 4303, section 3.4.3).

    Those that are `WINDOW_SERIALS` behind the newest one count as taken.
    """

    __slots__ = ("_newest", "_taken")

    def __init__(self) -> None:
        self._newest = 0
        self._taken = 1  # bit n is the serial n below the newest one; 0 is not a serial

    def take(self, serial: int) -> bool:
        """Take a serial, from 1; return whether it had not been taken. Check its code first."""
        ahead = serial - self._newest
        if ahead > 0:
            shifted = self._taken << ahead if ahead < WINDOW_SERIALS else 0
            self._taken = (shifted | 1) & ((1 << WINDOW_SERIALS) - 1)
            self._newest = serial
            return True
        if -ahead >= WINDOW_SERIALS or self._taken >> -ahead & 1:
            return False
        self._taken |= 1 << -ahead
        return True


class SerialTokens:
    """The check of one session's tokens of further connections, by their serials from 1: each is accepted once.

    Unlike `Tickets.redeem` it takes serials in any order, because connections overtake each other, and however far
    ahead they are. A stranger could have it compute tokens, 40 µs each: bound the rate of calls.
    """

    __slots__ = ("_tickets", "_window")

    def __init__(self, session_secret: bytes) -> None:
        self._tickets = Tickets(session_secret)
        self._window = SerialWindow()

    def redeem(self, serial: int, token: bytes) -> bool:
        """Return whether the token belongs to the serial, and is unused."""
        if serial <= 0 or not constant_time_equal(self._tickets.token(serial), token):
            return False
        return self._window.take(serial)


class TicketCheck:
    """The far end's check of a run's tokens: each opens one connection."""

    __slots__ = ("_newest", "secret")

    def __init__(self, secret: RunSecret) -> None:
        self.secret = secret
        self._newest: dict[tuple[str, int], int] = {}

    def check(
        self, direction: str, session: int, generation: int, window_bytes: int | None, token: bytes
    ) -> bytes | None:
        """Return the session's secret if the token is valid and unused, else None.

        The generations of a session's settings only rise: a token of an older generation counts as used.

        Args:
            direction: the direction that the connection is for.
            session: the number of its session, or of the probe.
            generation: the generation of settings that opened it.
            window_bytes: the window that it asks for; None leaves it to the kernel.
            token: the token that it shows, valid for exactly these.
        """
        session_secret = self.secret.session_secret(direction, session, generation, window_bytes)
        if not constant_time_equal(Tickets(session_secret).token(0), token):
            return None
        if generation <= self._newest.get((direction, session), -1):
            return None
        self._newest[direction, session] = generation
        return session_secret
