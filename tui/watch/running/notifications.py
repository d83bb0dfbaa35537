"""Notifications of news: to a program on its standard input, to a webhook, and by the host's sendmail.

None of them delays a test. The formats are in notification_formats.py.
"""

import asyncio
import contextlib
import errno
import json
import logging
import os
import re
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from ....engine.host.child_process import foreign_environment
from ....engine.host.event_loop import call_in_thread
from ....engine.host.saved_files import read_secret
from ....engine.model.errors import InvalidKeyError, explain_os_error, make_printable
from ....watch.events import News, Receiver
from ....watch.watch_plan import Notify, WatchPlan
from .notification_formats import mail, news_document, webhook_request

TIMEOUT_S: Final = 20.0
# The link that is down may be the way to the receiver: it is tried again for half an hour.
_PAUSES_S: Final = (2.0, 10.0, 60.0, 240.0, 600.0, 900.0)
_END_S: Final = 5.0
_MOST_OUTPUT: Final = 400
_READ_BYTES: Final = 4_096
_SENDMAIL_FOLDERS: Final = ("/usr/sbin", "/usr/lib")
_MOST_WAITING: Final = 50
_MOST_HEADER_BYTES: Final = 16_384
_HEADER: Final = re.compile(r"([A-Za-z0-9-]{1,64}):[ \t]*([\x20-\x7e]{1,4096})", re.ASCII)
# A token that has expired is soon replaced in the file of headers.
_PASSING: Final = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
)
_LASTING_ERRORS: Final = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ENOTDIR)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a receiver did not take a notification, as a sentence, and whether another try may help."""

    words: str
    passes: bool = False


NoteTold = Callable[[News, Receiver | None, tuple[Receiver, ...]], object]
"""Gets news that a receiver has before others, or, with None, that is done, and those that did not take it."""


class Notifier:
    """Sends notifications in the background, in the order of the events, and reports those that cannot be sent.

    A receiver that cannot be reached does not delay the others, which may still reach the user.
    """

    def __init__(self, report: Callable[[str, str | None], object], note_told: NoteTold) -> None:
        """`report` gets a sentence for each problem and its peer, None for the watch."""
        self._report, self._note_told = report, note_told
        self._turns = {receiver: asyncio.Lock() for receiver in Receiver}  # each gets its messages in order
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def room(self) -> int:
        """How many events may be sent beside those that are being sent."""
        return _MOST_WAITING - len(self._tasks)

    def check(self, notify: Notify) -> None:
        """Report receivers that cannot get anything on this host as it is: the first failure would be too late."""
        if notify.command and shutil.which(notify.command[0]) is None:
            self._report(f"exec: there is no program {make_printable(notify.command[0])}", None)
        if notify.headers_file is not None:
            try:
                read_headers(Path(notify.headers_file).expanduser())
            except InvalidKeyError as error:
                self._report(f"webhook: {error}", None)
        if notify.email and shutil.which(_sendmail(())[0]) is None:
            self._report("email: this host has no sendmail; install one, such as msmtp-mta or postfix", None)

    def send(self, plan: WatchPlan, news: News, has: Collection[Receiver] = ()) -> None:
        """Begin to send the notifications of an event, but not to the receivers that it `has`."""
        task = asyncio.create_task(self._send(plan, news, has))
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

    async def _send(self, plan: WatchPlan, news: News, has: Collection[Receiver]) -> None:
        """Tell each receiver of an event, each in its turn."""

        def report(problem: str) -> None:
            self._report(problem, news.peer)

        async def tell(receiver: Receiver, sending: Coroutine[Any, Any, str | None]) -> None:
            try:
                async with self._turns[receiver]:
                    problem = await sending
            finally:
                sending.close()  # if its turn never came
            waiting.discard(receiver)
            if problem is not None:
                missed.append(receiver)
                report(problem)
            elif waiting:
                self._note_told(news, receiver, ())

        sendings = _sendings(plan, news, report, has)
        waiting, missed = set(sendings), list[Receiver]()
        await asyncio.gather(*(tell(receiver, sending) for receiver, sending in sendings.items()))
        self._note_told(news, None, tuple(missed))


def _sendings(
    plan: WatchPlan, news: News, report: Callable[[str], object], has: Collection[Receiver]
) -> dict[Receiver, Coroutine[Any, Any, str | None]]:
    """Return how each receiver of a plan gets news, without those that it `has`."""
    notify = plan.notify
    sendings: dict[Receiver, Coroutine[Any, Any, str | None]] = {}
    if notify.command and Receiver.EXEC not in has:
        document = json.dumps(news_document(plan, news), allow_nan=False).encode() + b"\n"
        sendings[Receiver.EXEC] = run_command(notify.command, document, report)
    if notify.webhook is not None and Receiver.WEBHOOK not in has:
        body, headers = webhook_request(plan, news)
        sendings[Receiver.WEBHOOK] = post(notify.webhook, body, report, headers, notify.headers_file)
    if notify.email and Receiver.EMAIL not in has:
        sendings[Receiver.EMAIL] = run_command(
            _sendmail(notify.email), mail(plan, news), report, Receiver.EMAIL.value
        )
    return sendings


def _sendmail(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that sends a mail to addresses; it is outside the PATH of most users (FHS 4.6)."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SENDMAIL_FOLDERS))
    return shutil.which("sendmail", path=path) or "sendmail", "-i", "--", *addresses


async def run_command(
    command: tuple[str, ...], body: bytes, report: Callable[[str], object], key: str = "exec"
) -> str | None:
    """Start a program with a text on its input; return a sentence about the last problem, None if it took the text.

    It is tried again, as by `_persist`, if it ends with EX_TEMPFAIL, as a sendmail does whose server is away
    (sysexits(3)), or if the host could not start it now. `key` is the one of `[notify]` that asked for it.
    """
    return await _persist(f"{key}: {make_printable(command[0])}", lambda: _run_once(command, body), report)


async def _persist(
    who: str, attempt: Callable[[], Awaitable[_Refusal | None]], report: Callable[[str], object]
) -> str | None:
    """Try for half an hour, unless a refusal lasts; return a sentence about the last one, None if there is none.

    `report` gets a sentence about the first try that fails.
    """
    for number, pause_s in enumerate((*_PAUSES_S, None)):
        refusal = await attempt()
        if refusal is None:
            return None
        if not refusal.passes:
            return f"{who} {refusal.words}"
        if pause_s is None:
            return f"{who} did not take it, {number + 1} times: {refusal.words}"
        if not number:
            report(f"{who} did not take it, and is tried again: {refusal.words}")
        await asyncio.sleep(pause_s)
    return None


async def _run_once(command: tuple[str, ...], body: bytes) -> _Refusal | None:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=foreign_environment(),
            start_new_session=True,
        )
    except OSError as error:
        passes = error.errno not in _LASTING_ERRORS
        return _Refusal(f"cannot be started: {explain_os_error(error)}", passes)
    except ValueError as error:
        return _Refusal(f"cannot be started: {error}")
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output = await _talk(process, body)
            status = await process.wait()
    except TimeoutError:
        return _Refusal(f"did not end within {TIMEOUT_S:g} s, and was killed")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it has started as well
            await process.wait()
    if status == 0:
        return None
    words = make_printable(" ".join(output.decode(errors="replace").split()))[:_MOST_OUTPUT]
    return _Refusal(f"ended with status {status}{f': {words}' if words else ''}", status == os.EX_TEMPFAIL)


async def _talk(process: asyncio.subprocess.Process, body: bytes) -> bytes:
    """Write the input, and return the first part of the output; read the rest and drop it."""
    if process.stdin is None or process.stdout is None:
        return b""
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError, of uvloop: it has ended, and read nothing
        process.stdin.write(body)
        process.stdin.close()
    output = b""
    while part := await process.stdout.read(_READ_BYTES):
        output += part[: _READ_BYTES - len(output)]
    return output


async def post(
    address: str,
    body: bytes,
    report: Callable[[str], object],
    headers: Mapping[str, str] = MappingProxyType({}),
    headers_file: str | None = None,
) -> str | None:
    """Post to an address; return a sentence about the problem of the last try, None if the address took it.

    It is tried again, as by `_persist`, unless the answer is a lasting refusal. The file of headers is read at each
    try, so that a token can be replaced.
    """
    host = urlsplit(address).hostname

    async def attempt() -> _Refusal | None:
        try:
            await call_in_thread(
                lambda: _post(address, body, headers, headers_file), name="webhook", deadline_s=TIMEOUT_S
            )
        except InvalidKeyError as error:  # the file may be about to be replaced
            return _Refusal(str(error), passes=True)
        except (OSError, HTTPException) as error:
            return _Refusal(_explain(error, host)[:_MOST_OUTPUT], passes=True)
        except ValueError as error:
            return _Refusal(f"refused it: {_explain(error, host)[:_MOST_OUTPUT]}")
        return None

    return await _persist(f"webhook: {host}", attempt, report)


def _explain(error: Exception, host: str | None) -> str:
    """Return why a POST failed; urllib wraps the error of the system."""
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, OSError) and reason.errno is not None:
        return explain_os_error(reason, host or "")
    return make_printable(str(reason)) or "no answer in time"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could lead to another scheme or host: it is an error, and the user corrects the address."""

    def redirect_request(self, *_arguments: object, **_options: object) -> None:
        """Follow no redirect."""


def read_headers(path: Path) -> dict[str, str]:
    """Return the headers of a file of lines `Name: value`. Raises InvalidKeyError, also if others can read it."""
    text = read_secret(path, _MOST_HEADER_BYTES, "put lines of NAME: VALUE in it and nothing else")
    headers: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        match = _HEADER.fullmatch(line.strip())
        if match is None:
            raise InvalidKeyError(f"{path}: line {number} is not a header; give NAME: VALUE, in ASCII")
        headers[match[1]] = match[2]
    return headers


def _post(address: str, body: bytes, headers: Mapping[str, str], headers_file: str | None) -> None:
    """Post once, with certificates checked.

    Raises InvalidKeyError about the file of headers, OSError, or ValueError if another try would not help.
    """
    own = {} if headers_file is None else read_headers(Path(headers_file).expanduser())
    headers = {"User-Agent": "linkgauge", **headers, **own}
    request = urllib.request.Request(address, body, headers, method="POST")  # noqa: S310 - the plan has checked the scheme
    try:
        with urllib.request.build_opener(_NoRedirects).open(request, timeout=TIMEOUT_S / 2) as answer:
            answer.read(_READ_BYTES)
    except urllib.error.HTTPError as error:
        with error:  # its connection is still open
            is_lasting = error.code < HTTPStatus.INTERNAL_SERVER_ERROR and error.code not in _PASSING
            raise (ValueError if is_lasting else OSError)(f"it answered {error.code} {error.reason}") from None
