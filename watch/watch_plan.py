"""The plan of a watch: its peers, their tests and times, data budgets, notifications. Pure."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from ..engine.model.errors import PlanError, make_printable
from ..engine.model.peer import Peer
from ..engine.model.plan import SECOND_NS, Plan
from ..presets.auto_select import AUTO
from ..presets.expectation import check_variant
from ..presets.wire import DEFAULT_VARIANT, Variant

MAX_PEERS: Final = 256
MAX_NAME_LENGTH: Final = 64
LEAST_PERIOD_NS: Final = SECOND_NS
MOST_PERIOD_NS: Final = 366 * 86_400 * SECOND_NS
MAX_RETESTS: Final = 10
GROUP_PREFIX: Final = "watch-"
"""The group of a watch's runs in the run log begins with this."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Timing:
    """How often a peer is tested.

    Args:
        check_every_ns: the time from the start of a full test to the start of the next.
        probe_every_ns: the time between probes of latency, which send a few small requests; None without probes.
        jitter: each time is moved at random to either side, by at most this share of a period, 0 to 0.5, so that
            tests of many hosts do not coincide.
        retests: how often a test below its mark is repeated before it counts, 0 to MAX_RETESTS.
        retest_after_ns: the pause before a repetition.
    """

    check_every_ns: int = 3_600 * SECOND_NS
    probe_every_ns: int | None = 60 * SECOND_NS
    jitter: float = 0.1
    retests: int = 1
    retest_after_ns: int = 10 * SECOND_NS

    def __post_init__(self) -> None:
        """Check the ranges; raise PlanError."""
        for what, period in (("every", self.check_every_ns), ("probe_every", self.probe_every_ns)):
            if period is not None and not LEAST_PERIOD_NS <= period <= MOST_PERIOD_NS:
                raise PlanError(what, f"{period / SECOND_NS:g} s", "give 1 s to 366 days")
        if not 0 <= self.jitter <= 0.5:
            raise PlanError("jitter", f"{self.jitter:g}", "give 0 to 0.5 of the period")
        if not 0 <= self.retests <= MAX_RETESTS:
            raise PlanError("retests", str(self.retests), f"give 0 to {MAX_RETESTS}")
        if not 0 <= self.retest_after_ns <= MOST_PERIOD_NS:
            raise PlanError("retest_after", f"{self.retest_after_ns / SECOND_NS:g} s", "give 0 s to 366 days")


@dataclass(frozen=True, slots=True)
class WatchedPeer:
    """A peer, and how it is tested.

    Args:
        name: its name in lists, metrics and labels of runs.
        peer: its address.
        plan: each full test; it has a duration.
        preset: the id of the preset that judges the tests, `auto`, or None.
        pass_percent: the pass mark, in percent of the expected rate. A test below it is repeated.
        timing: how often it is tested.
        budget_bytes: the maximum payload of tests and probes in a calendar month (UTC), both directions; None
            without limit.
        variant: the link options that differ from the preset's.
    """

    name: str
    peer: Peer
    plan: Plan
    preset: str | None = AUTO
    pass_percent: float = 95.0
    timing: Timing = Timing()
    budget_bytes: int | None = None
    variant: Variant = DEFAULT_VARIANT

    def __post_init__(self) -> None:
        """Check the name, the duration, the budget and the link options; raise PlanError."""
        check_name("name", self.name)
        if self.preset is None:
            check_variant(None, self.variant)
        if self.plan.duration_ns is None:
            raise PlanError("seconds", "none", "each test of a watch needs an end: give a duration")
        if self.budget_bytes is not None and self.budget_bytes < 0:
            raise PlanError("budget", str(self.budget_bytes), "give 0 bytes or more")


@dataclass(frozen=True, slots=True)
class Notify:
    """The receivers of notifications.

    Args:
        command: a program and its arguments, started without a shell, with the change as JSON on its input.
        webhook: an http or https address; the same JSON is posted to it.
    """

    command: tuple[str, ...] = ()
    webhook: str | None = None

    def __post_init__(self) -> None:
        """Raise PlanError if the webhook is not a web address."""
        if self.webhook is not None and not _is_web_address(self.webhook):
            shown = repr(make_printable(self.webhook))
            raise PlanError("webhook", shown, "give an http:// or https:// address")


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """A watch: its name, its peers, its notifications.

    `budget_bytes` is the maximum payload of all peers together in a calendar month; None without limit.
    """

    name: str
    peers: tuple[WatchedPeer, ...]
    notify: Notify = Notify()
    budget_bytes: int | None = None

    def __post_init__(self) -> None:
        """Check names and numbers; raise PlanError."""
        check_name("watch", self.name)
        if not 1 <= len(self.peers) <= MAX_PEERS:
            raise PlanError("peers", str(len(self.peers)), f"a watch has 1 to {MAX_PEERS} peers")
        seen: set[str] = set()
        for each in self.peers:
            if each.name in seen:
                raise PlanError("peers", repr(each.name), "give each peer a name of its own")
            seen.add(each.name)

    @property
    def group(self) -> str:
        """The group of its runs in the run log."""
        return GROUP_PREFIX + self.name

    def find(self, name: str) -> WatchedPeer | None:
        """Return the peer of a name; None if there is none."""
        return next((each for each in self.peers if each.name == name), None)


def _is_web_address(text: str) -> bool:
    if not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_name(what: str, name: str) -> None:
    """Raise PlanError unless a name can be a label of a metric and a word of a command line."""
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        shown = repr(make_printable(name)[:MAX_NAME_LENGTH])
        raise PlanError(what, shown, f"give up to {MAX_NAME_LENGTH} letters, digits, dots, dashes, underscores")
