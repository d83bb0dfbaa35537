"""The entry point of the command line: registers the commands and turns errors into exit statuses.

Exit status: 0 pass, or nothing to judge; 1 short or fail; 2 wrong command line; 3 the test could not be run, or not
to its end. This module and the options load nothing heavy: each command imports its own needs when it runs, so that
`--help` is fast.
"""

import os
from collections.abc import Sequence
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from ... import __version__
from ...engine.host.debug_log import LOG_VARIABLE, configure_debug_log
from ...engine.model.errors import LinkgaugeError, PlanError
from .commands import ceiling, lab, presets, runs, sweep
from .commands.app import open_app
from .commands.endpoint import endpoint
from .commands.run import check, run
from .completion import COMPLETION_VARIABLE, complete
from .exit_status import USAGE_ERROR, error_exit_status
from .output import PROGRAM, discard_stdout, emit_line, prepare_streams, print_stderr
from .typer_extension import AppGroup, with_options
from .usage_errors import plan_error_text, typer_error_text

EPILOG: Final = (
    "PEER is HOST[:PORT], [IPv6]:PORT, ssh://[USER@]HOST[:PORT] (ssh starts the far end there, and nothing is "
    "installed), or loopback (an endpoint of this command's own). "
    "Exit status: 0 pass, 1 short or fail, 2 the command line is wrong, 3 the test could not be run."
)

app = typer.Typer(
    name=PROGRAM,
    cls=AppGroup,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="[PEER | COMMAND ...]",
    epilog=EPILOG,
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        emit_line(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", metavar="", help="Log what linkgauge does on stderr; see also LINKGAUGE_LOG."
        ),
    ] = False,
) -> None:
    """Tell whether a network link delivers what a link of its kind should, and if not, why not.

    Without a command, the app opens: linkgauge [PEER]. Without a PEER it tests this machine's loopback.
    """
    if verbose:
        os.environ.setdefault(LOG_VARIABLE, "debug")
    configure_debug_log()


app.command("app")(with_options(open_app))
app.command("check")(with_options(check))
app.command("run")(with_options(run))
app.command("endpoint")(endpoint)
lab.add_commands(app)
sweep.add_commands(app)
ceiling.add_commands(app)
app.add_typer(presets.app, name="presets")
app.add_typer(runs.app, name="runs")


def run_command_line(arguments: Sequence[str]) -> int:
    """Run the command line with these arguments, without the program's name; return the exit status."""
    prepare_streams()
    command = typer.main.get_command(app)
    try:
        if COMPLETION_VARIABLE in os.environ:
            status: object = complete(command, PROGRAM)
        else:
            status = command.main(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except TyperException as error:
        print_stderr(typer_error_text(error))
        return error.exit_code
    except PlanError as error:
        print_stderr(plan_error_text(error))
        return USAGE_ERROR
    except LinkgaugeError as error:
        print_stderr(str(error))
        return error_exit_status(error)
    except (BrokenPipeError, SystemExit):  # Rich exits like this where the reader of the help has gone
        discard_stdout()
        return 0
    except OSError as error:
        print_stderr(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        return 3
    return status if isinstance(status, int) else 0
