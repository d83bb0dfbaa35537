"""The codes by which a device joins an app: ten digits, each for one device, and hard to guess.

A code is shown on a screen and typed on a phone. It counts once. The device that has joined gets a pass, with which
its page joins again after a reload. Wrong codes have a budget for each address. The one for all addresses is large,
so that a stranger with many of them does not keep the user's device out. The code is long enough for that: a day of
guesses at that budget finds it in one of 6,900 cases. Pure: time is an argument.
"""

import secrets
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

from ....engine.model.errors import RequestDeclined
from ....engine.model.ip_address import client_network
from ....engine.model.plan import SECOND_NS
from ....engine.model.shared_key import constant_time_equal

CODE_DIGITS: Final = 10
WRONG_OF_ADDRESS: Final = 5
WRONG_IN_ALL: Final = 1_000
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
        self._wrong: deque[tuple[int, str]] = deque()
        self._wrong_of: Counter[str] = Counter()

    def join(self, text: str, address: str, now_ns: int) -> str:
        """Return the pass of a device that gives the code, or its pass.

        Raises RequestDeclined at any other text, and at any code while a budget of wrong ones is spent. A pass is
        too long to be guessed, and needs no budget.

        Args:
            text: What the page sent.
            address: The device's address.
            now_ns: The monotonic time.
        """
        given = text.encode("utf-8", "replace")
        if self._pass and constant_time_equal(given, self._pass.encode()):
            return self._pass
        network = client_network(address)
        self._check_budget(network, now_ns)
        if constant_time_equal(given, self.code.encode()):
            self._used.append(self.code)
            self._renew()
            self._pass = secrets.token_urlsafe(_PASS_BYTES)
            return self._pass
        self._wrong.append((now_ns, network))
        self._wrong_of[network] += 1
        if text in self._used:
            raise RequestDeclined(f"this code was used already, and counts once; {_SEE_SCREEN}")
        raise RequestDeclined(f"this is not the code; {_SEE_SCREEN}")

    def _renew(self) -> None:
        while self.code in self._used:
            self.code = self._make_code()

    def _check_budget(self, network: str, now_ns: int) -> None:
        """Raise RequestDeclined after too many wrong codes, of an address or of all."""
        while self._wrong and now_ns - self._wrong[0][0] >= _SPAN_NS:
            _, other = self._wrong.popleft()
            self._wrong_of[other] -= 1
            if not self._wrong_of[other]:
                del self._wrong_of[other]
        if len(self._wrong) >= WRONG_IN_ALL or self._wrong_of[network] >= WRONG_OF_ADDRESS:
            raise RequestDeclined("too many wrong codes; try again in a minute")
