"""What aiohttp itself logs of requests: any stranger causes a traceback of twelve lines with each malformed one."""

import logging
from collections.abc import Callable
from typing import Any, Final

from aiohttp import web
from aiohttp.http import HttpProcessingError

from ...engine.model.ip_address import unmap_ip_address

# What a client sends, or that it has gone. Everything else is a mistake of ours.
_OF_CLIENTS: Final = (HttpProcessingError, web.RequestPayloadError, ConnectionError)


class ServerLog(logging.LoggerAdapter[logging.Logger]):
    """A logger for aiohttp, whose records are all for developers: the operator's log has bounded lines of its own.

    Args:
        logger: Takes everything, as DEBUG.
        on_malformed: Is told the address of a client whose request could not be read, as the host's log has it.
        on_failure: Is told, in a few words, of a request that failed by a mistake of this program.
    """

    def __init__(
        self, logger: logging.Logger, on_malformed: Callable[[str], object], on_failure: Callable[[str], object]
    ) -> None:
        super().__init__(logger)
        self._on_malformed, self._on_failure = on_malformed, on_failure

    def log(self, level: int, msg: object, *args: object, **options: Any) -> None:
        """Log a record of aiohttp; `exc_info` is the exception that it is about."""
        super().log(logging.DEBUG, msg, *args, **options)
        error = options.get("exc_info")
        if level < logging.ERROR or not isinstance(error, BaseException):
            return
        if not isinstance(error, _OF_CLIENTS):
            self._on_failure(f"a request failed: {type(error).__name__}")
        elif isinstance(error, HttpProcessingError):
            self._on_malformed(unmap_ip_address(str(args[0])) if args else "")
