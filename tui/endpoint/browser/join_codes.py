"""The codes by which a device joins an app: six digits, each for one device, and hard to guess.

A code is shown on a screen and typed on a phone. It counts once. The device that has joined gets a pass, with which
its page joins again after a reload. Wrong codes have a budget, for each address and for all together, and after a
few of them there is a new code: at the budget's rate a guess takes weeks. Pure: time is an argument.
"""

import secrets
from collections import deque
from collections.abc import Callable
from typing import Final

from ....engine.model.errors import RequestDeclined
from ....engine.model.ip_address import client_network
from ....engine.model.plan import SECOND_NS
from ....engine.model.shared_key import constant_time_equal

CODE_DIGITS: Final = 6
WRONG_OF_CODE: Final = 5
WRONG_OF_ADDRESS: Final = 5
WRONG_IN_ALL: Final = 30
_SPAN_NS: Final = 60 * SECOND_NS
_MAX_USED: Final = 32
_PASS_BYTES: Final = 16
_SEE_SCREEN: Final = "linkgauge shows the valid one"


def _random_code() -> str:
    return f"{secrets.randbelow(10**CODE_DIGITS):0{CODE_DIGITS}}"


class JoinCodes:
    """The code in force, the codes that were used, and the pass of the device that has joined last."""

    def __init__(self, make_code: Callable[[], str] = _random_code) -> None:
        self._make_code = make_code
        self.code = make_code()
        self._pass = ""
        self._used: deque[str] = deque(maxlen=_MAX_USED)
        self._wrong: deque[tuple[int, str]] = deque(maxlen=WRONG_IN_ALL)
        self._wrong_of_code = 0

    def join(self, text: str, address: str, now_ns: int) -> str:
        """Return the pass of a device that gives the code, or its pass; raise RequestDeclined otherwise.

        Args:
            text: What the page sent.
            address: The device's address.
            now_ns: The monotonic time.
        """
        given = text.encode("utf-8", "replace")
        if self._pass and constant_time_equal(given, self._pass.encode()):
            return self._pass
        if constant_time_equal(given, self.code.encode()):
            self._used.append(self.code)
            self._renew()
            self._pass = secrets.token_urlsafe(_PASS_BYTES)
            return self._pass
        self._wrong.append((now_ns, client_network(address)))
        if text in self._used:
            raise RequestDeclined(f"this code was used already, and counts once; {_SEE_SCREEN}")
        self._wrong_of_code += 1
        if self._wrong_of_code >= WRONG_OF_CODE:
            self._renew()
        raise RequestDeclined(f"this is not the code; {_SEE_SCREEN}")

    def _renew(self) -> None:
        before, self._wrong_of_code = self.code, 0
        while self.code == before or self.code in self._used:
            self.code = self._make_code()

    def check_budget(self, address: str, now_ns: int) -> None:
        """Raise RequestDeclined after too many wrong codes, of an address or of all. Call it before `join`."""
        network = client_network(address)
        recent = [other for at_ns, other in self._wrong if now_ns - at_ns < _SPAN_NS]
        if len(recent) >= WRONG_IN_ALL or recent.count(network) >= WRONG_OF_ADDRESS:
            raise RequestDeclined("too many wrong codes; try again in a minute")
