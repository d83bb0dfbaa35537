"""`linkgauge observe`: why the transfers of other programs are slow."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....engine.model.errors import PlanError, UsageError
from ....engine.model.plan import SECOND_NS
from ...words import parsing
from ..click_extension.option_fields import argument, flag, group, option
from ..metrics_options import MetricsOptions
from ..output import check_output_file
from ..output_options import OUTPUT, headless_flag, json_flag, redact_flag

if TYPE_CHECKING:
    from ....observe.request import ObserveRequest

_WHERE: Final = "Where, and what is expected"
_ONCE_NS: Final = 2 * SECOND_NS
_TIME: Final = "give seconds such as 10, or a time such as 500ms, 10s or 5m"


@dataclass(frozen=True, slots=True)
class ObserveOptions:
    """The connections that count, the time, and the output."""

    target: str | None = argument(
        "[TARGET]",
        "HOST[:PORT], :PORT, a process id, or the name of a program. All connections without one.",
        default=None,
    )
    once: bool = flag("", "Look for two seconds, print the result and end.")
    seconds: str | None = option("", "End after this time.", "-t", metavar="TIME")
    interval: str | None = option("", "Time between two results, 250ms to 60s.", "-i", metavar="TIME", shown="1")
    top: str = option("", "Show so many connections, the fastest ones.", default="20", metavar="N")
    netns: str | None = option(_WHERE, "Look into a network namespace of `ip netns`.", metavar="NAME")
    pid: str | None = option(_WHERE, "Look into the network namespace of a process.", metavar="PID")
    line_rate: str | None = option(
        _WHERE, "Line rate that the path should have: 1G.", metavar="RATE", shown="the interface's"
    )
    min_rate: str | None = option(
        _WHERE, "Exit status 1 if all matching connections together are slower than this: 100M.", metavar="RATE"
    )
    headless: bool = headless_flag()
    as_json: bool = json_flag()
    json_stream: bool = flag(OUTPUT, "Print a JSON line for each interval.")
    csv: Path | None = option(OUTPUT, "Write a row for each connection and interval.", metavar="FILE")
    force: bool = flag(OUTPUT, "Replace an existing file.")
    save: bool = flag(OUTPUT, "Save each connection to the run log while it is observed.")
    label: str | None = option(OUTPUT, "Name of the saved connections, to find them again.", metavar="TEXT")
    redact: bool = redact_flag()
    metrics: MetricsOptions = group(MetricsOptions)

    def to_request(self) -> "ObserveRequest":
        """Return what is observed. Raises PlanError for the first bad value."""
        from ....observe.request import MAX_INTERVAL_NS, MAX_TOP, MIN_INTERVAL_NS, ObserveRequest, parse_target

        if self.once and self.interval is not None:
            raise UsageError("--once prints one result after two seconds; leave out --once or --interval")
        interval_ns = _ONCE_NS if self.once else parsing.time_ns(self.interval or "1", "interval", _TIME)
        if not MIN_INTERVAL_NS <= interval_ns <= MAX_INTERVAL_NS:
            raise PlanError("interval", self.interval or "1", "give 250ms to 60s")
        top = parsing.integer(self.top, "top", f"give 1 to {MAX_TOP}")
        if not 1 <= top <= MAX_TOP:
            raise PlanError("top", self.top, f"give 1 to {MAX_TOP}")
        return ObserveRequest(
            target=None if self.target is None else parse_target(self.target),
            top=top,
            interval_ns=interval_ns,
            line_rate_bit_s=None if self.line_rate is None else parsing.line_rate_bit_s(self.line_rate),
        )

    def duration_s(self) -> float | None:
        """Return the time after which it ends; None for no end. Raises PlanError and UsageError."""
        if self.once:
            if self.seconds is not None:
                raise UsageError("--once looks for two seconds; leave out --once or --seconds")
            return _ONCE_NS / SECOND_NS
        if self.seconds is None:
            if self.as_json:
                raise UsageError("--json prints one result; add --once or --seconds, or use --json-stream")
            return None
        seconds = parsing.time_ns(self.seconds, "seconds", _TIME) / SECOND_NS
        if seconds <= 0:
            raise PlanError("seconds", self.seconds, _TIME)
        return seconds


def observe(options: ObserveOptions) -> int:
    """Show why the transfers of other programs are slow, while they run.

    The kernel tells of every TCP connection of this host what it tells of linkgauge's own, and the same rules judge
    it. Nothing is sent. Without root, the processes of other users are not named; their connections are shown.
    """
    from ....observe.namespace_entry import enter_namespace
    from ...session.user_presets import load_presets
    from ..runners.observe_runner import ObserveJob, run_observe
    from ..web.browser_page import has_screen

    if options.as_json and options.json_stream:
        raise UsageError("--json and --json-stream are two outputs; give one of them")
    request, seconds = options.to_request(), options.duration_s()
    min_rate = None if options.min_rate is None else parsing.minimum_rate_bit_s(options.min_rate)
    pid = None if options.pid is None else parsing.integer(options.pid, "pid", "give the number of a process")
    check_output_file("CSV file", options.csv, force=options.force)
    if options.label is not None and not options.save:
        raise UsageError("--label names what --save writes to the run log; add --save or leave out --label")
    label = None
    if options.label is not None:
        from ....engine.results.run_log.label_validation import validate_label  # here: it loads SQLite

        label = validate_label(options.label)
    catalog, publishing = load_presets(), options.metrics.to_plan()
    enter_namespace(options.netns, pid)
    has_output = options.save or any(each is not None for each in (options.csv, min_rate, publishing))
    is_plain = options.headless or options.as_json or options.json_stream or has_output
    return run_observe(
        ObserveJob(
            request,
            catalog,
            seconds,
            as_json=options.as_json,
            as_json_stream=options.json_stream,
            csv_file=options.csv,
            min_rate_bit_s=min_rate,
            publishing=publishing,
            saves=options.save,
            label=label,
            has_screen=seconds is None and not is_plain and has_screen(),
        )
    )
