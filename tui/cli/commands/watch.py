"""`linkgauge watch`: the same peers tested again and again, and each change of their level reported once."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ....engine.model.errors import PlanError, UsageError
from ....engine.model.plan import Plan
from ....presets.verdict import DEFAULT_PASS_PERCENT
from ....watch.watch_plan import Timing, WatchedPeer, WatchPlan
from ...text import parsing
from ..metrics_options import MetricsOptions
from ..options import OUTPUT, TEST, PlanOptions
from ..output import keep_log_off_screen
from ..peer_options import AccessOptions, SshOptions, check_supported
from ..typer_extension import option
from ..web.browser_page import end_with_server, has_screen

if TYPE_CHECKING:
    from ....engine.model.peer import Peer
    from ....presets.catalog import Catalog

_TIMES: Final = "Times and data"
_NONE: Final = "none"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How often a peer of the command line is tested, and what that may cost."""

    preset: str | None = option(
        TEST, str | None, "Preset to compare with.", metavar="auto|none|ID", default_text="auto"
    )
    pass_mark: str | None = option(
        TEST, str | None, "Percent of the expected rate that is a pass.", metavar="PERCENT", default_text="95"
    )
    every: str = option(_TIMES, str, "Time between full tests.", default="1h", metavar="TIME", default_text=True)
    probe_every: str = option(
        _TIMES, str, "Time between probes of latency, or none.", default="1m", metavar="TIME", default_text=True
    )
    retests: str = option(
        _TIMES, str, "Repeat a test below its mark up to N times.", default="1", metavar="N", default_text=True
    )
    retest_after: str = option(
        _TIMES, str, "Pause before a repetition.", default="10s", metavar="TIME", default_text=True
    )
    budget: str | None = option(
        _TIMES,
        str | None,
        "Most data of tests and probes in a calendar month: 50G.",
        metavar="SIZE",
        default_text="no limit",
    )

    def to_plan(self, peer: "Peer", plan: Plan, catalog: "Catalog") -> WatchPlan:
        """Return the watch of one peer. Raises PlanError or UnknownPreset for the first bad value."""
        preset = None if self.preset == _NONE else self.preset or "auto"
        if preset not in {None, "auto"}:
            catalog.find(preset or "")
        name = _UNSAFE.sub("-", str(peer)).strip("-._")[:64] or "peer"
        percent = DEFAULT_PASS_PERCENT if self.pass_mark is None else parsing.pass_percent(self.pass_mark)
        budget = None if self.budget is None else parsing.bytes_limit(self.budget)
        watched = WatchedPeer(name, peer, plan, preset, percent, self._timing(), budget)
        return WatchPlan(name, (watched,))

    def _timing(self) -> Timing:
        remedy = "give a time such as 30s, 10m or 24h"
        probes = None if self.probe_every == _NONE else parsing.time_ns(self.probe_every, "probe-every", remedy)
        return Timing(
            parsing.time_ns(self.every, "every", remedy),
            probes,
            retests=parsing.integer(self.retests, "retests", "give 0 to 10"),
            retest_after_ns=parsing.time_ns(self.retest_after, "retest-after", remedy),
        )


def watch(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE.toml | PEER", show_default=False, help="A file with the peers of the watch, or one peer."
        ),
    ],
    *,
    options: WatchOptions,
    plan: PlanOptions,
    access: AccessOptions,
    ssh: SshOptions,
    metrics: MetricsOptions,
    once: Annotated[
        bool, typer.Option("--once", metavar="", help="Test each peer once, and end.", rich_help_panel=_TIMES)
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            metavar="",
            help="Show the watch that another process carries out, such as a service; test nothing.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    headless: Annotated[
        bool, typer.Option("--headless", metavar="", help="Open no screen.", rich_help_panel=OUTPUT)
    ] = False,
    json_stream: Annotated[
        bool,
        typer.Option("--json-stream", metavar="", help="Print a JSON line for each event.", rich_help_panel=OUTPUT),
    ] = False,
) -> int:
    """Test peers again and again, and report each change of their level once.

    Full tests run at long intervals, latency probes, which send next to nothing, at short ones. A test below its
    mark is repeated before it counts. State and results are in the run log: after a restart the watch goes on.
    Without a screen, SIGHUP reads the file again.
    """
    from ..preset_option import load_catalog_with_warnings
    from ..runners.watch_runner import WatchJob, run_watch

    if follow and (once or metrics != MetricsOptions()):
        raise UsageError(
            "--follow only shows a watch; --once and metrics are options of the one that carries it out"
        )
    publishing = metrics.to_plan()
    catalog, file = load_catalog_with_warnings(), None
    if (read := read_target(target, catalog)) is not None:
        if (options, plan, access, ssh) != (WatchOptions(), PlanOptions(), AccessOptions(), SshOptions()):
            raise UsageError("a file says how its peers are tested; give no such options with it")
        file, watched = Path(target), read
    else:
        peer, test = ssh.apply_to(access.parse_peer(target)), plan.to_plan()
        rate = plan.sending_rate()
        check_supported(test, peer, rate)
        if isinstance(rate, str):
            raise PlanError("rate", rate, "a watch needs a rate such as 100M, or none for the expected one")
        watched = options.to_plan(peer, replace(test), catalog)
    is_screen = not (headless or json_stream or once) and has_screen()
    if is_screen:
        keep_log_off_screen()
        end_with_server()
    return run_watch(WatchJob(watched, catalog, file, once, json_stream, is_screen, publishing, is_followed=follow))


def read_target(target: str, catalog: "Catalog") -> WatchPlan | None:
    """Return the watch of a file; None where the target is a peer. Raises PlanError for a file with an error."""
    if not (target.endswith(".toml") or Path(target).is_file()):
        return None
    from ...services.watch.watch_file import read_watch_file

    return read_watch_file(Path(target), catalog)
