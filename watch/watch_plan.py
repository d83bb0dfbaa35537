"""The plan of a watch: its peers, their tests and times, data budgets, notifications. Pure."""

import re
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from ..engine.model.errors import PlanError, make_printable
from ..engine.model.peer import Peer
from ..engine.model.plan import SECOND_NS, Plan
from ..engine.protocol.foreign.missing_features import Feature, find_unsupported, why_unavailable
from ..presets.auto_select import AUTO
from ..presets.expectation import check_variant
from ..presets.verdict import NO_LIMITS, AcceptanceLimits
from ..presets.wire import DEFAULT_VARIANT, Variant

MAX_PEERS: Final = 256
MAX_NAME_LENGTH: Final = 64
LEAST_PERIOD_NS: Final = SECOND_NS
MOST_PERIOD_NS: Final = 366 * 86_400 * SECOND_NS
LEAST_REPEAT_NS: Final = 60 * SECOND_NS
MAX_RETESTS: Final = 10
GROUP_PREFIX: Final = "watch-"
"""The group of a watch's runs in the run log begins with this."""

_MAIL_ADDRESS: Final = re.compile(r"[A-Za-z0-9][\w.+-]*@[A-Za-z0-9][A-Za-z0-9.-]*", re.ASCII)
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
        limits: what each test must keep, whatever rate the link should have.
        is_shared: whether its tests run beside others at the endpoint. Otherwise each has the endpoint for itself,
            and waits for its turn.
        own: this host's own endpoint, if both are hosts of a mesh: it takes part in no other test meanwhile.
        origin: this host: watches of several hosts do not test peers of the same name at the same times.
    """

    name: str
    peer: Peer
    plan: Plan
    preset: str | None = AUTO
    pass_percent: float = 95.0
    timing: Timing = Timing()
    budget_bytes: int | None = None
    variant: Variant = DEFAULT_VARIANT
    limits: AcceptanceLimits = NO_LIMITS
    is_shared: bool = False
    own: Peer | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        """Check the name, the duration, the budget and the link options; raise PlanError."""
        check_name("name", self.name)
        if self.preset is None:
            check_variant(None, self.variant)
        limits = self.limits.max_loss, self.limits.min_rate_bit_s
        if self.plan.workload.is_transactional and limits != (None, None):
            raise PlanError(
                "limits", f"with {self.plan.workload}", "max_loss and min_rate are for streams and datagrams"
            )
        no_load = why_unavailable(self.peer, Feature.LOAD_PHASES)
        for name, is_wanted in (("max_rise", self.limits.max_rise_ns is not None), ("path", self.plan.path)):
            if is_wanted and no_load is not None:
                raise PlanError(name, f"with {self.peer}", no_load)
        problem = find_unsupported(self.plan, self.peer)
        if problem is not None:
            raise problem
        if self.plan.duration_ns is None:
            raise PlanError("seconds", "none", "each test of a watch needs an end: give a duration")
        if self.budget_bytes is not None and self.budget_bytes < 0:
            raise PlanError("budget", str(self.budget_bytes), "give 0 bytes or more")


class NotifyFormat(StrEnum):
    """The receivers that a webhook can have."""

    JSON = "json"
    SLACK = "slack"
    ALERTMANAGER = "alertmanager"
    NTFY = "ntfy"


@dataclass(frozen=True, slots=True)
class Notify:
    """The receivers of notifications, and when they get them.

    Args:
        command: a program and its arguments, started without a shell, with the change as JSON on its input.
        webhook: an http or https address; the change is posted to it.
        format: what the webhook's receiver expects.
        headers_file: a file of lines `Name: value` that each post carries; only its owner may read it.
        email: addresses that the host's sendmail gets the change for.
        repeat_ns: tell again after this time, while a peer stays failed or below its mark; None tells once.
        quiet: the first minute of the local day without notifications, and the first with them again; None without
            quiet hours.
    """

    command: tuple[str, ...] = ()
    webhook: str | None = None
    format: NotifyFormat = NotifyFormat.JSON
    headers_file: str | None = None
    email: tuple[str, ...] = ()
    repeat_ns: int | None = None
    quiet: tuple[int, int] | None = None

    @property
    def has_receiver(self) -> bool:
        """Whether anybody is told."""
        return bool(self.command or self.email) or self.webhook is not None

    def is_quiet(self, at_s: float) -> bool:
        """Return whether a time, in seconds since 1970, is in the quiet hours of this host's local day."""
        if self.quiet is None:
            return False
        local = time.localtime(at_s)
        minute, (first, end) = local.tm_hour * 60 + local.tm_min, self.quiet
        return first <= minute < end if first < end else minute >= first or minute < end

    def __post_init__(self) -> None:
        """Raise PlanError for what is not an address, a time, a combination or a command."""
        for each in self.command:
            if "\0" in each:
                raise PlanError("exec", repr(each)[:60], "give words without NUL, which no program can get")
        for each in self.email:
            if not _MAIL_ADDRESS.fullmatch(each):
                raise PlanError("email", repr(make_printable(each)[:60]), "give addresses such as ops@example.net")
        if self.repeat_ns is not None and not LEAST_REPEAT_NS <= self.repeat_ns <= MOST_PERIOD_NS:
            raise PlanError("repeat", f"{self.repeat_ns / SECOND_NS:g} s", "give 1 minute to 366 days")
        if self.quiet is not None and self.quiet[0] == self.quiet[1]:
            raise PlanError("quiet", "a whole day", "give two times such as 22:00-07:00")
        if self.webhook is None and (self.headers_file is not None or self.format is not NotifyFormat.JSON):
            field = "format" if self.headers_file is None else "headers_file"
            raise PlanError(field, "given", "give the webhook as well, which it is for")
        if self.webhook is not None:
            _check_web_address(self.webhook)


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


def _check_web_address(text: str) -> None:
    """Raise PlanError unless a text is the address of a webhook. A password of it is not shown."""
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        has_access = "@" in parts.netloc
    except ValueError:
        is_address = has_access = False
    if has_access:
        remedy = "leave these out, and give a line such as Authorization: Basic ... in a headers_file"
        raise PlanError("webhook", "an address with a name or password", remedy)
    if not is_address or not text.isprintable() or " " in text:
        raise PlanError("webhook", repr(make_printable(text)), "give an http:// or https:// address")


def check_name(what: str, name: str) -> None:
    """Raise PlanError unless a name can be a label of a metric and a word of a command line."""
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        shown = repr(make_printable(name)[:MAX_NAME_LENGTH])
        raise PlanError(what, shown, f"give up to {MAX_NAME_LENGTH} letters, digits, dots, dashes, underscores")
