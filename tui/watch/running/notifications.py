"""Notifications of news: a program gets JSON on its standard input, and a webhook the same JSON.

Neither delays a test.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from ....engine.host.child_process import foreign_environment
from ....engine.host.event_loop import call_in_thread
from ....engine.model.errors import explain_os_error, make_printable
from ....watch.event_codec import event_line
from ....watch.events import News
from ....watch.watch_plan import Notify, WatchPlan
from ..watch_words import event_words

TIMEOUT_S: Final = 20.0
# The link that is down may be the way to the address: a webhook is tried again for half an hour.
_PAUSES_S: Final = (2.0, 10.0, 60.0, 240.0, 600.0, 900.0)
_END_S: Final = 5.0
_MOST_OUTPUT: Final = 400
_READ_BYTES: Final = 4_096
_MOST_WAITING: Final = 50
_PASSING: Final = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
_log = logging.getLogger(__name__)


def news_document(plan: WatchPlan, news: News) -> dict[str, Any]:
    """Return the JSON of a notification: the event as in `--json-stream`, the watch's name, and a sentence."""
    return {**event_line(news), "watch": plan.name, "text": event_words(news, plan)}


class Notifier:
    """Sends notifications in the background, in the order of the events, and reports those that cannot be sent.

    A webhook that cannot be reached does not delay the program, which may still reach the user.
    """

    def __init__(self, report: Callable[[str, str], object], note_told: Callable[[News], object]) -> None:
        """`report` gets a sentence for each problem and its peer, `note_told` each news that is done."""
        self._report, self._note_told = report, note_told
        self._command_turn, self._webhook_turn = asyncio.Lock(), asyncio.Lock()  # in order
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, plan: WatchPlan, news: News) -> None:
        """Begin to send the notifications of an event."""
        if not plan.notify.command and plan.notify.webhook is None:
            return
        if len(self._tasks) >= _MOST_WAITING:
            self._report(f"notification dropped: {_MOST_WAITING} are waiting already", news.peer)
            return
        body = json.dumps(news_document(plan, news), allow_nan=False).encode()
        task = asyncio.create_task(self._send(plan.notify, news, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Wait some seconds for the notifications that are being sent, and end."""
        tasks = tuple(self._tasks)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_END_S)
            if late:
                _log.debug("%d notifications were not sent before the end", len(late))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, notify: Notify, news: News, body: bytes) -> None:
        """Tell the program and the webhook of an event, each in its turn."""

        def report(problem: str) -> None:
            self._report(problem, news.peer)

        await asyncio.gather(
            self._in_turn(self._command_turn, run_command(notify.command, body), report),
            self._in_turn(self._webhook_turn, post(notify.webhook, body, report), report),
        )
        self._note_told(news)

    async def _in_turn(
        self, turn: asyncio.Lock, sending: Coroutine[Any, Any, str | None], report: Callable[[str], object]
    ) -> None:
        try:
            async with turn:
                problem = await sending
        finally:
            sending.close()  # if its turn never came
        if problem is not None:
            report(problem)


async def run_command(command: tuple[str, ...], body: bytes) -> str | None:
    """Start a program with JSON on its input; return a sentence about the problem, None if it took the JSON."""
    if not command:
        return None
    name = make_printable(command[0])
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=foreign_environment(),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = explain_os_error(error) if isinstance(error, OSError) else str(error)
        return f"exec: {name} cannot be started: {why}"
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output = await _talk(process, body)
            status = await process.wait()
    except TimeoutError:
        return f"exec: {name} did not end within {TIMEOUT_S:g} s, and was killed"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it has started as well
            await process.wait()
    words = make_printable(" ".join(output.decode(errors="replace").split()))[:_MOST_OUTPUT]
    return None if status == 0 else f"exec: {name} ended with status {status}{f': {words}' if words else ''}"


async def _talk(process: asyncio.subprocess.Process, body: bytes) -> bytes:
    """Write the input, and return the first part of the output; read the rest and drop it."""
    if process.stdin is None or process.stdout is None:
        return b""
    process.stdin.write(body + b"\n")
    process.stdin.close()
    output = b""
    while part := await process.stdout.read(_READ_BYTES):
        output += part[: _READ_BYTES - len(output)]
    return output


async def post(address: str | None, body: bytes, report: Callable[[str], object]) -> str | None:
    """Post JSON to an address; return a sentence about the problem of the last try, None if the address took it.

    It tries for half an hour, unless the answer is a lasting refusal. `report` gets a sentence about the first try
    that fails.
    """
    if address is None:
        return None
    host = urlsplit(address).hostname
    for number, pause_s in enumerate((*_PAUSES_S, None)):
        try:
            await call_in_thread(lambda: _post(address, body), name="webhook", deadline_s=TIMEOUT_S)
        except (OSError, ValueError, HTTPException) as error:
            why = make_printable(str(getattr(error, "reason", "") or error))[:_MOST_OUTPUT] or "no answer in time"
            if isinstance(error, ValueError):
                return f"webhook: {host} refused it: {why}"
        else:
            return None
        if pause_s is None:
            return f"webhook: {host} did not take it, {number + 1} times: {why}"
        if not number:
            report(f"webhook: {host} did not take it, and is tried again: {why}")
        await asyncio.sleep(pause_s)
    return None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead to another scheme or host: it is an error, and the user corrects the address."""

    def redirect_request(self, *_arguments: object, **_options: object) -> None:
        """Follow no redirect."""


def _post(address: str, body: bytes) -> None:
    """Post once, with certificates checked. Raises OSError, or ValueError if another try would not help."""
    headers = {"Content-Type": "application/json", "User-Agent": "linkgauge"}
    request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 - the plan has checked the scheme
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S / 2) as answer:
            answer.read(_READ_BYTES)
    except urllib.error.HTTPError as error:
        with error:  # its connection is still open
            is_lasting = error.code < HTTPStatus.INTERNAL_SERVER_ERROR and error.code not in _PASSING
            raise (ValueError if is_lasting else OSError)(f"it answered {error.code} {error.reason}") from None
