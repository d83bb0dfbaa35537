"""The options of the results: documents, files and lines in place of a screen, and the judgement of a run."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...engine.model.plan import SECOND_NS
from ..words.redaction import REDACTION
from .click_extension.option_fields import flag, option, setting_option
from .output import check_output_file

if TYPE_CHECKING:
    from ..session.run_spec import Outputs, Record

OUTPUT: Final = "Output"
"""Section of the help."""


def json_flag() -> Any:
    """Return the flag for one document as the result."""
    return flag(OUTPUT, "Print JSON.", "--json", "-J", brief="Print JSON.")


def json_stream_flag() -> Any:
    """Return the flag for lines from the start to the result."""
    return flag(OUTPUT, "Print JSON lines while the test is running.", "--json-stream")


def redact_flag() -> Any:
    """Return the flag for stand-ins in place of addresses and names, which holds from the command line on."""
    return flag(
        OUTPUT,
        "Print stand-ins such as host-1 for addresses and names of hosts and users.",
        callback=_redact,
        is_eager=True,
    )


def _redact(_context: Any, _parameter: Any, is_wanted: bool) -> bool:
    REDACTION.is_on = REDACTION.is_on or is_wanted
    return is_wanted


def headless_flag() -> Any:
    """Return the flag of a command that else opens a screen."""
    return flag(OUTPUT, "Open no screen.", brief="Open no screen.")


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """Where the results of a test go."""

    label: str | None = option(
        OUTPUT, "Name of the run, to find it again.", brief="Name of the run, to find it again.", metavar="TEXT"
    )
    csv: Path | None = option(
        OUTPUT,
        "Append a row for each interval, direction and session to this file.",
        brief="Append a row for each interval to this file.",
        metavar="FILE",
    )
    as_json: bool = json_flag()
    as_json_stream: bool = json_stream_flag()
    redact: bool = redact_flag()

    def to_record(self) -> "Record":
        """Return the facts that the run log keeps beside the measurements; raise PlanError for a bad label."""
        from ...engine.results.run_log.label_validation import validate_label  # here: it loads SQLite
        from ..session.run_spec import Record

        return Record(label=validate_label(self.label))

    def to_outputs(self) -> "Outputs":
        """Return the outputs; raise UsageError for two kinds of JSON."""
        from ..session.run_spec import Outputs

        return Outputs(csv=self.csv, as_json=self.as_json, as_json_stream=self.as_json_stream)


@dataclass(frozen=True, slots=True)
class SeriesOutputOptions:
    """Where the result of a series of runs goes."""

    csv: Path | None = option(
        OUTPUT, "Write a row for each run.", brief="Write a row for each run.", metavar="FILE"
    )
    report: Path | None = option(
        OUTPUT, "Write an HTML page with plots.", brief="Write an HTML page with plots.", metavar="FILE"
    )
    force: bool = flag(OUTPUT, "Replace the files if they exist.", "-f")
    as_json: bool = json_flag()
    as_json_stream: bool = json_stream_flag()
    redact: bool = redact_flag()

    def to_outputs(self) -> "Outputs":
        """Return the outputs. Raises PlanError if a file cannot be written, UsageError for both kinds of JSON."""
        from ..session.run_spec import Outputs

        page = self.report
        if page is not None:
            from ..session.run_exports import check_report_path

            page = check_report_path(page)
        check_output_file("CSV file", self.csv, force=self.force)
        check_output_file("report", page, force=self.force)
        return Outputs(csv=self.csv, report=page, as_json=self.as_json, as_json_stream=self.as_json_stream)

    @property
    def arguments(self) -> list[str]:
        """The same options as words of a command line."""
        files = {"--csv": self.csv, "--report": self.report}
        flags = {"--force": self.force, "--json": self.as_json, "--json-stream": self.as_json_stream}
        flags |= {"--redact": self.redact}
        return [
            *(word for name, path in files.items() if path is not None for word in (name, str(path))),
            *(name for name, is_given in flags.items() if is_given),
        ]


@dataclass(frozen=True, slots=True)
class OutputOptions(ResultOptions):
    """The same, and the pass mark."""

    pass_mark: str = setting_option("pass_mark", OUTPUT)
    why: bool = flag(
        OUTPUT, "Say what limits the rate, even without an expected rate.", brief="Say what limits the rate."
    )
    confirm: bool = flag(
        OUTPUT,
        "The same as --why, and then test once more, with one option changed: is the first finding the limit?",
        brief="Test again with one option changed, to prove it.",
    )
    live: bool = flag(
        OUTPUT,
        "On a terminal, redraw one line instead of printing a line for each second.",
        brief="Redraw one line instead of a line a second.",
    )

    def line_ns(self, interval_ns: int | None) -> int | None:
        """Return the time of each line about the test; None for a live line. `interval_ns` is what the user gave.

        A terminal gets a line for each second: the lines stay in view, show each dip, and can be copied into a
        ticket. A pipe gets them only with --interval: a script that does not ask for them reads the summary alone.
        """
        is_csv_on_stdout = str(self.csv).startswith("/dev/")  # as /dev/stdout and /dev/fd/1 may be
        if self.live or self.as_json or self.as_json_stream or is_csv_on_stdout:
            return None
        return interval_ns or (SECOND_NS if sys.stdout.isatty() else None)
