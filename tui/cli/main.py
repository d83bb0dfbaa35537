"""The entry point of the command line: registers the commands and turns errors into exit statuses.

This module and the options load nothing heavy: a command is imported when it is asked for, and imports its own
needs when it runs.
"""

import os
import signal
from collections.abc import Sequence
from typing import Final

import click

from ... import __version__
from ...engine.host.debug_log import LOG_VARIABLE, configure_debug_log, debug_log_problem
from ...engine.model.errors import LinkgaugeError, PlanError, explain_resource_error
from ..words.redaction import REDACTION
from .click_extension.command_groups import AppGroup, LateCommands
from .click_extension.command_help import option_names
from .click_extension.option_fields import Option
from .completion import COMPLETION_VARIABLE, complete
from .output import PROGRAM, discard_stdout, emit_line, finish_output, prepare_streams, print_stderr
from .usage_errors import click_error_text, plan_error_text

_HELP: Final = """Is this link as fast as it should be? If not, why?

linkgauge measures TCP and UDP throughput between two hosts and compares it with the documented or computed rate for
that link. Run `linkgauge endpoint` on one host and `linkgauge check HOST` on the other. Without a command the
app opens: linkgauge [PEER]; without a PEER it tests this machine's loopback."""
_EPILOG: Final = """PEER is HOST[:PORT], [IPv6]:PORT, ssh://[USER@]HOST[:PORT] (ssh starts the remote end; nothing
is installed there), or loopback (a built-in endpoint on this machine). A PRESET comes before it: linkgauge check
1gbe-1500 HOST. Without a PEER the variable LINKGAUGE_PEER counts.

Common options have defaults of yours in settings.toml and in variables: linkgauge settings shows them.

Exit status: 0 PASS, or no expected rate; 1 SHORT or FAIL; 2 wrong command line; 3 the test could not run, broke
off, or passed but an output is not whole; 128 + N ended by signal N, such as 130 after Ctrl-C. Results up to a
signal are saved."""


def _print_version(context: click.Context, _parameter: click.Parameter, is_requested: bool) -> None:
    if is_requested:
        emit_line(f"{PROGRAM} {__version__}")
        context.exit()


def _open_log(*, verbose: bool) -> None:
    """Open the log before any command."""
    if verbose:
        os.environ.setdefault(LOG_VARIABLE, "debug")
    configure_debug_log()
    problem = debug_log_problem()
    if problem is not None:
        print_stderr(problem)


def _make_program() -> AppGroup:
    version = Option(
        ["--version"],
        default=False,
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_print_version,
        help="Print the version.",
    )
    verbose = Option(
        ["--verbose", "-v"], default=False, is_flag=True, help="Log to stderr; with LINKGAUGE_LOG=FILE to a file."
    )
    return AppGroup(
        PROGRAM,
        _HELP,
        LateCommands(
            __package__ or "",
            {
                "app": ".commands.app:open_app",
                "check": ".commands.run:check",
                "run": ".commands.run:run",
                "respond": ".commands.respond:respond",
                "path": ".commands.respond:path",
                "endpoint": ".commands.endpoint:ENDPOINT",
                "sweep": ".commands.sweep:sweep",
                "mesh": ".commands.mesh:mesh",
                "watch": ".commands.watch:watch",
                "observe": ".commands.observe:observe",
                "lab": ".commands.lab:lab",
                "mtu": ".commands.paths.mtu:mtu",
                "shape": ".commands.paths.shape:shape",
                "flows": ".commands.paths.flows:flows",
                "ceiling": ".commands.ceiling:ceiling",
                "web": ".web.web_command:web",
                "discover": ".commands.discover:discover",
                "settings": ".commands.settings:settings",
                "completions": ".completion:completions",
                "presets": ".commands.presets:PRESETS",
                "runs": ".commands.saved_runs.runs:RUNS",
            },
        ),
        callback=_open_log,
        params=[version, verbose],
        context_settings={"help_option_names": ["-h", "--help"]},
        subcommand_metavar="[PEER | COMMAND ...]",
        epilog=_EPILOG,
    )


program: Final = _make_program()


def run_command_line(arguments: Sequence[str]) -> int:
    """Run the command line with these arguments, without the program's name; return the exit status."""
    prepare_streams()
    REDACTION.reset()
    return finish_output(_carry_out(arguments))


def _carry_out(arguments: Sequence[str]) -> int:
    """Carry out the command, and print the error that ends it; return the exit status."""
    try:
        if COMPLETION_VARIABLE in os.environ:
            status: object = complete(program)
        else:
            status = program.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except click.ClickException as error:
        print_stderr(click_error_text(error))
        return error.exit_code
    except click.Abort:  # Ctrl-C, of a command that has no handler for it
        return 128 + signal.SIGINT
    except LinkgaugeError as error:
        print_stderr(plan_error_text(error, option_names(program)) if isinstance(error, PlanError) else str(error))
        return error.exit_status
    except (BrokenPipeError, SystemExit):  # Rich exits like this if the reader of the help has gone
        discard_stdout()
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print_stderr(f"{where}{explain_resource_error(error)}")
        return LinkgaugeError.exit_status
    return status if isinstance(status, int) else 0
