"""`linkgauge watch`: the same peers tested again and again, and each change of their level reported once."""

import re
import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....engine.model.errors import PlanError, UsageError
from ....engine.model.plan import Plan
from ...words import parsing
from ..click_extension.option_fields import flag, group, is_group_typed, option
from ..latency_options import LimitOptions
from ..link_options import LinkOptions
from ..metrics_options import MetricsOptions
from ..output import keep_log_off_screen, print_stderr
from ..output_options import OUTPUT, headless_flag, redact_flag
from ..peer_options import AUTO, FarEndOptions, JudgedTargetOptions, Target, check_supported, peer_argument
from ..plan_options import TEST, PlanOptions
from ..web.browser_page import end_with_server, has_screen

if TYPE_CHECKING:
    from ....engine.model.peer import Peer
    from ....presets.catalog import Catalog
    from ....presets.wire import Variant
    from ....watch.watch_plan import Timing, WatchPlan

_TIMES: Final = "Times and data"
_NONE: Final = "none"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How often a peer of the command line is tested, and what that may cost."""

    pass_mark: str | None = option(
        TEST,
        "Percent of the expected rate that is a pass.",
        brief="Percent of the expected rate to pass. [95]",
        metavar="PERCENT",
        shown="95",
    )
    every: str = option(
        _TIMES, "Time between full tests.", brief="Time between full tests. [1h]", default="1h", metavar="TIME"
    )
    probe_every: str = option(
        _TIMES,
        "Time between probes of latency, or none.",
        brief="Time between probes of latency, or none. [1m]",
        default="1m",
        metavar="TIME",
    )
    retests: str = option(_TIMES, "Repeat a test below its mark up to N times.", default="1", metavar="N")
    retest_after: str = option(_TIMES, "Pause before a repetition.", default="10s", metavar="TIME")
    shared: bool = flag(
        _TIMES,
        "Test beside other tests of the endpoint, and let others test beside it, instead of waiting for a turn.",
    )
    budget: str | None = option(
        _TIMES,
        "Most data of tests and probes in a calendar month: 50G.",
        brief="Most data in a month: 50G. [no limit]",
        metavar="SIZE",
        shown="no limit",
    )

    def to_plan(self, peer: "Peer", plan: Plan, preset: str | None, variant: "Variant") -> "WatchPlan":
        """Return the watch of one peer. Raises PlanError for the first bad value."""
        from ....presets.verdict import DEFAULT_PASS_PERCENT
        from ....watch.watch_plan import WatchedPeer, WatchPlan

        name = _UNSAFE.sub("-", str(peer)).strip("-._")[:64] or "peer"
        percent = DEFAULT_PASS_PERCENT if self.pass_mark is None else parsing.pass_percent(self.pass_mark)
        budget = None if self.budget is None else parsing.bytes_limit(self.budget, "budget")
        timing, here = self._timing(), socket.gethostname()
        watched = WatchedPeer(
            name, peer, plan, preset, percent, timing, budget, variant, is_shared=self.shared, origin=here
        )
        return WatchPlan(name, (watched,))

    def _timing(self) -> "Timing":
        from ....watch.watch_plan import Timing

        remedy = "give a time such as 30s, 10m or 24h"
        probes = None if self.probe_every == _NONE else parsing.time_ns(self.probe_every, "probe-every", remedy)
        return Timing(
            parsing.time_ns(self.every, "every", remedy),
            probes,
            retests=parsing.integer(self.retests, "retests", "give 0 to 10"),
            retest_after_ns=parsing.time_ns(self.retest_after, "retest-after", remedy),
        )


@dataclass(frozen=True, slots=True)
class TestedPeerOptions:
    """How a peer of the command line is tested. A file states the same for its own peers."""

    watch: WatchOptions = group(WatchOptions)
    plan: PlanOptions = group(PlanOptions)
    limits: LimitOptions = group(LimitOptions)
    link: LinkOptions = group(LinkOptions)
    far_end: FarEndOptions = group(FarEndOptions)

    def to_plan(self, target: Target, catalog: "Catalog") -> "WatchPlan":
        """Return the watch of one peer. Raises PlanError or UnknownPreset for the first bad value."""
        from ...session.run_spec import Judging, find_preset

        variant = self.link.to_variant()
        Judging(find_preset(target.preset, catalog), variant).check_link_options()
        peer, plan, rate = self.far_end.find_peer(target.peer), self.plan.to_plan(), self.plan.sending_rate()
        check_supported(plan, peer, rate)
        if isinstance(rate, str):
            raise PlanError("rate", rate, "a watch needs a rate such as 100M, or none for the expected one")
        limits = self.limits.to_limits(plan.workload)
        watch = self.watch.to_plan(peer, self.limits.apply_to(plan), target.preset, variant)
        return replace(watch, peers=tuple(replace(each, limits=limits) for each in watch.peers))


@dataclass(frozen=True, slots=True)
class WatchTargetOptions(JudgedTargetOptions):
    """One peer with its preset, or a file."""

    second: str | None = peer_argument("FILE.toml | PEER", "A file with the peers of the watch, or one peer.")


@dataclass(frozen=True, slots=True)
class WatchCommandOptions:
    """A watch, and where its events go."""

    target: WatchTargetOptions = group(WatchTargetOptions)
    tested: TestedPeerOptions = group(TestedPeerOptions)
    metrics: MetricsOptions = group(MetricsOptions)
    host: str | None = option(
        _TIMES,
        "This host in a file with [[host]]: it tests all others.",
        metavar="NAME",
        shown="the name that it has",
    )
    once: bool = flag(_TIMES, "Test each peer once, and end.", brief="Test each peer once, and end.")
    follow: bool = flag(
        OUTPUT,
        "Show the watch that another process carries out, such as a service; test nothing.",
        brief="Show the watch of another process, such as a service.",
    )
    headless: bool = headless_flag()
    json_stream: bool = flag(OUTPUT, "Print a JSON line for each event.", brief="Print a JSON line for each event.")
    log_file: Path | None = option(
        OUTPUT,
        "Append the lines of --headless or --json-stream to this file; SIGHUP opens it again, after a rotation.",
        metavar="FILE",
        shown="stdout",
    )
    redact: bool = redact_flag()


def watch(options: WatchCommandOptions) -> int:
    """Test peers again and again, and report each change of their level once.

    Full tests run at long intervals, latency probes, which send next to nothing, at short ones. A test below its
    mark is repeated before it counts. State and results are in the run log: after a restart the watch goes on.
    Without a screen, SIGHUP reads the file again.
    """
    from ...session.user_presets import load_presets
    from ..runners.watch_runner import WatchJob, run_watch

    if options.follow and (options.once or is_group_typed(MetricsOptions)):
        raise UsageError(
            "--follow only shows a watch; --once and metrics are options of the one that carries it out"
        )
    publishing = options.metrics.to_plan()
    catalog, file = load_presets(print_stderr), None
    preset, named = options.target.read_words()
    watched = None if named is None else read_target(named, catalog, options.host)
    if options.host is not None and watched is None:
        raise UsageError("--host names this host in a file with [[host]]; give that file")
    if named is None or watched is None:
        watched = options.tested.to_plan(options.target.find("watch", AUTO), catalog)
    elif preset is not None or is_group_typed(TestedPeerOptions):
        raise UsageError("a file says how its peers are tested; give no such options with it")
    else:
        file = Path(named)
    if options.log_file is not None and not (options.headless or options.json_stream or options.once):
        raise UsageError("--log-file takes lines, not a screen; give --headless or --json-stream, too")
    is_screen = not (options.headless or options.json_stream or options.once) and has_screen()
    if is_screen:
        from ...app.look import read_look

        read_look()  # before anything is started
        keep_log_off_screen()
        end_with_server()
    log_file = None if options.log_file is None else str(options.log_file.absolute())
    outputs = (options.once, options.json_stream, is_screen, publishing, options.follow, log_file, options.host)
    return run_watch(WatchJob(watched, catalog, file, *outputs))


def read_target(target: str, catalog: "Catalog", here: str | None = None) -> "WatchPlan | None":
    """Return the watch of a file; None if the target is a peer. Raises PlanError for a file with an error."""
    if not (target.endswith(".toml") or Path(target).is_file()):
        return None
    from ...watch.running.watch_file import read_watch_file

    return read_watch_file(Path(target), catalog, here)
