"""The endpoint of `linkgauge-endpoint.pyz`: one file that runs with the standard library of Python alone.

It has the options of `linkgauge endpoint` that a remote end needs most. The packages of extras and the library of
the command line stay out of the file; `make dist` makes it (packaging/endpoint_archive.py).
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from .... import __version__
from ....engine.model.errors import LinkgaugeError, PlanError
from ....engine.model.peer import DEFAULT_PORT
from ....engine.model.plan import MAX_PORT
from ...endpoint.endpoint_setup import EndpointConfig, LimitSources, check_access
from ..output import print_stderr
from .endpoint_runner import print_limits, serve

_NAME: Final = "linkgauge-endpoint.pyz"


def _parser() -> ArgumentParser:
    parser = ArgumentParser(_NAME, description="Serve tests of linkgauge from other hosts until Ctrl-C.")
    parser.add_argument("--bind", metavar="ADDRESS", help="address to listen on (default: every address)")
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, metavar="N", help=f"TCP and UDP port (default: {DEFAULT_PORT})"
    )
    parser.add_argument("--key-file", metavar="FILE", help="file with the key that clients need")
    parser.add_argument("--open", action="store_true", help="ask for no key: serve everybody")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate (PEM) for the control connections")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate (PEM)")
    parser.add_argument("--exclusive", action="store_true", help="carry out one test at a time")
    parser.add_argument("--limits", metavar="FILE", help="TOML file of limits")
    parser.add_argument("--limit", action="append", default=[], metavar="NAME=VALUE", help="one limit")
    parser.add_argument("--allow", action="append", default=[], metavar="NETWORK", help="serve only this network")
    parser.add_argument("--deny", action="append", default=[], metavar="NETWORK", help="refuse this network")
    parser.add_argument("--show-limits", action="store_true", help="print all limits and exit")
    parser.add_argument("--log-json", action="store_true", help="log one JSON object a line")
    parser.add_argument("--log-file", metavar="FILE", help="append the log to this file; SIGHUP opens it again")
    parser.add_argument("--json", "-J", action="store_true", help="print JSON")
    parser.add_argument("--version", action="version", version=f"linkgauge {__version__}")
    return parser


def _to_config(options: Namespace) -> EndpointConfig:
    """Return the configuration; raise LinkgaugeError for options that are wrong or exclude each other."""
    tls_files = options.tls_cert, options.tls_key
    tls = check_access(options.bind, options.key_file, tls_files, is_open=options.open)
    if not 0 <= options.port <= MAX_PORT:
        raise PlanError("--port", options.port, "give a number from 1 to 65535, or 0 for a free one")
    return EndpointConfig(
        options.bind,
        options.port,
        options.key_file,
        is_open=options.open,
        tls=tls,
        limits=LimitSources(options.limits, tuple(options.limit), tuple(options.allow), tuple(options.deny)),
        as_json=options.json,
        log_as_json=options.log_json,
        log_file=options.log_file,
        is_exclusive=options.exclusive,
    )


def main() -> int:
    """Serve with the options of the command line; return the exit status."""
    options = _parser().parse_args()
    try:
        config = _to_config(options)
    except LinkgaugeError as error:
        print_stderr(str(error))
        return error.exit_status
    if options.show_limits:
        return print_limits(config.limits, as_json=config.as_json)
    # Worker processes are started by the names of their modules, which they find in the same file.
    os.environ["PYTHONPATH"] = str(Path(sys.argv[0]).resolve())
    return serve(config)
