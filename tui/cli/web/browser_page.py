"""Where a command can draw its screen: on the terminal, or in the page of a browser that `linkgauge web` serves."""

import os
import signal
import sys
from typing import Final

from ....engine.host.end_signals import die_with_parent

DRIVER_VARIABLE: Final = "TEXTUAL_DRIVER"
BROWSER_DRIVER: Final = "textual.drivers.web_driver:WebDriver"


def is_browser_page() -> bool:
    """Return whether `linkgauge web` has started this process for a page."""
    return os.environ.get(DRIVER_VARIABLE) == BROWSER_DRIVER


def has_screen() -> bool:
    """Return whether an app can be drawn, on stderr, and gets keys: without keys nobody could leave it."""
    return is_browser_page() or (_has_terminal() and not is_dumb_terminal())


def is_dumb_terminal() -> bool:
    """Return whether there is a terminal that cannot move its cursor, such as an editor's: it shows no app."""
    return _has_terminal() and os.environ.get("TERM") == "dumb" and not is_browser_page()


def _has_terminal() -> bool:
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def end_with_server() -> None:
    """Have the kernel end a page's process with its server, however that ends; the app takes it for a hang-up."""
    if is_browser_page() and sys.platform == "linux":
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup(1) is for the server: it has no page's terminal
        die_with_parent(signal.SIGHUP)
