"""`python -P -m linkgauge.mesh.cell_run`: the near end of one cell's run, as a child process.

It is a process of its own, so that a Dask worker's event loop and memory have no part in the measurement, and so
that a run leaves nothing in a worker that lives for weeks. It reads one line of standard input, a `RunRequest` in
JSON. The key in it is in no command line, environment or file. The process ends when that input ends. The kernel
ends it a while after the run's duration, if it still waits for something then.

When the run is over it writes the run's events, one JSON text a line. It writes them at the end because the run
must not wait for a reader. If the run did not begin, it writes one line,
`{"error": TEXT, "code": FailureCode, "end": END}`: END is the end at fault, `near`, `far` or null.
"""

import asyncio
import contextlib
import json
import logging
import math
import signal
import sys
from dataclasses import dataclass, field
from typing import Final

from ..engine.host.child_process import open_standard_input
from ..engine.host.debug_log import configure_debug_log
from ..engine.host.event_loop import run
from ..engine.host.shortage import find_shortage_in
from ..engine.model.directions import End
from ..engine.model.errors import (
    LinkgaugeError,
    PeerError,
    PeerNotLinkgauge,
    PeerRefused,
    PeerUntrusted,
    PeerVersionMismatch,
    PlanError,
    explain_resource_error,
)
from ..engine.model.peer import Peer
from ..engine.model.plan import SECOND_NS, Plan
from ..engine.model.serialization import decode, encode, encode_tagged
from ..engine.model.shared_key import Access, SharedKey
from ..engine.near.run import open_run
from .cell_result import MAX_CELL_BYTES
from .events import FailureCode

_MAX_REQUEST_BYTES: Final = 1 << 16
_GRACE_S: Final = 60.0  # for the start and the end of a run, each of which has a deadline of its own
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run to carry out: its plan, the far host's endpoint, and the mesh's key."""

    plan: Plan
    address: str
    port: int
    key: str = field(repr=False)

    @property
    def peer(self) -> Peer:
        """The far end. Raises PlanError or InvalidKeyError."""
        return Peer(self.address, self.port, Access(SharedKey(self.key)))


def encode_request(request: RunRequest) -> str:
    """Return a request as the line that this process reads."""
    return json.dumps(encode(request), separators=(",", ":"))


def error_line(text: str, code: FailureCode, end: End | None = None) -> str:
    """Return the line of a cell without a run."""
    return json.dumps({"error": encode(text), "code": code.value, "end": None if end is None else end.value})


def failure_line(error: LinkgaugeError | OSError | MemoryError) -> str:
    """Return the line of an error that kept a run from beginning, with the end at fault."""
    if isinstance(error, OSError | MemoryError):
        return error_line(explain_resource_error(error), FailureCode.FAILED, End.NEAR)
    if isinstance(error, PeerRefused | PeerNotLinkgauge | PeerVersionMismatch | PeerUntrusted):
        return error_line(str(error), FailureCode.UNREACHABLE, End.FAR)
    if isinstance(error, PeerError):  # the far host, or the path there
        # The remedy is for an endpoint that the user starts; a mesh starts its own.
        return error_line(str(error).partition("; start `linkgauge endpoint`")[0], FailureCode.UNREACHABLE)
    return error_line(str(error), FailureCode.FAILED, End.NEAR)


async def carry_out(request: RunRequest) -> list[str]:
    """Carry out a run and return the lines of its events, or the one line of its failure."""
    lines: list[str] = []
    size = 0
    try:
        _check_duration(request.plan)
        async with open_run(request.plan, request.peer) as running:
            async for event in running:
                line = json.dumps(encode_tagged(event), separators=(",", ":"))
                size += len(line) + 1
                if size > MAX_CELL_BYTES:
                    text = f"more than {MAX_CELL_BYTES >> 20} MiB of samples; give less --sessions or --seconds"
                    return [error_line(text, FailureCode.FAILED, End.NEAR)]
                lines.append(line)
    except (LinkgaugeError, OSError, MemoryError) as error:
        return [failure_line(error)]
    except Exception as error:  # noqa: BLE001 - the worker reads nothing else
        _log.exception("the run broke off")
        text = f"the test broke off: {find_shortage_in(str(error)) or repr(error)}"
        return [error_line(text, FailureCode.FAILED, End.NEAR)]
    return lines


def _check_duration(plan: Plan) -> None:
    if plan.duration_ns is None:
        raise PlanError("--seconds", "none", "each test of a mesh needs an end: give a duration")


async def _answer_request() -> list[str]:
    """Return the lines of the run that standard input asks for; none if the input ends before the run."""
    async with open_standard_input(_MAX_REQUEST_BYTES) as reader:
        try:
            request = decode(RunRequest, json.loads(await reader.readline()))
        except (LinkgaugeError, ValueError, RecursionError) as error:
            return [error_line(f"the request cannot be read: {error}", FailureCode.FAILED, End.NEAR)]
        _limit_lifetime(request.plan)
        running = asyncio.create_task(carry_out(request))
        input_end = asyncio.create_task(reader.read())
        await asyncio.wait([running, input_end], return_when=asyncio.FIRST_COMPLETED)
        for task in (running, input_end):
            task.cancel()
        await asyncio.wait([running, input_end])
        return [] if running.cancelled() else running.result()


def _limit_lifetime(plan: Plan) -> None:
    """Have the kernel end this process in the end (SIGALRM).

    Another program of the worker may have inherited both pipes. Then they do not end with the worker, and nothing
    else would end a process that waits until its events are read.
    """
    signal.alarm(math.ceil((plan.duration_ns or 0) / SECOND_NS + _GRACE_S))


def main() -> None:
    """Carry out one run."""
    configure_debug_log(has_stderr=False)
    lines = run(_answer_request())
    with contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        sys.stdout.writelines(f"{line}\n" for line in lines)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
