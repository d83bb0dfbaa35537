"""The debug log: the `linkgauge` logger written to stderr or to a file, as LINKGAUGE_LOG says. Off by default.

Every process of a test sets it up for itself: the variable reaches processes that are started from here.
"""

import logging
import os
from collections.abc import MutableMapping
from typing import Final

LOG_VARIABLE: Final = "LINKGAUGE_LOG"
_LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
_FORMAT: Final = "%(asctime)s.%(msecs)03d [%(process)d] %(name)s: %(message)s"


def configure_debug_log(environment: MutableMapping[str, str] = os.environ, *, has_stderr: bool = True) -> None:
    """Set the `linkgauge` logger up from LINKGAUGE_LOG; without the variable, do nothing.

    A level (`debug`, `info` or `warning`) writes to stderr. Any other value is a file, to which debug messages are
    appended. The file is opened at the first message, so that one that cannot be written stops no worker. A process
    whose stderr another one reads as its last words has no stderr for a log (`has_stderr`): it logs to files only.
    """
    target = environment.get(LOG_VARIABLE)
    if not target:
        return
    level = _LEVELS.get(target.lower())
    if level is not None and not has_stderr:
        return
    handler = (
        logging.FileHandler(target, encoding="utf-8", delay=True) if level is None else logging.StreamHandler()
    )
    handler.setFormatter(logging.Formatter(_FORMAT, "%H:%M:%S"))
    _replace_handlers(handler)
    _logger().setLevel(logging.DEBUG if level is None else level)


def disable_stderr_log(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Turn the log off, for this process and those it starts, where it goes to stderr; return whether it did.

    A full-screen app calls this before it draws: a line on stderr would appear in the middle of its screen.
    """
    if environment.get(LOG_VARIABLE, "").lower() not in _LEVELS:
        return False
    del environment[LOG_VARIABLE]
    _replace_handlers()
    return True


def _logger() -> logging.Logger:
    return logging.getLogger(__name__.partition(".")[0])


def _replace_handlers(*handlers: logging.Handler) -> None:
    logger = _logger()
    for handler in logger.handlers[:]:
        logger.removeHandler(handler)
        handler.close()
    for handler in handlers:
        logger.addHandler(handler)
    logger.propagate = not handlers
