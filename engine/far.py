"""The far end of one control connection: greets, prepares one run, carries it out, reports, finishes."""

import asyncio
import errno
import secrets
import socket
import time
from collections.abc import Callable
from typing import Final

from .auth import TOKEN_BYTES, Gate, Key, RunSecret
from .codec import decode
from .dataplane.channel import Message as WorkerEvent
from .dataplane.pool import Pool
from .errors import LinkgaugeError, RemoteProtocolError
from .greeting import greet_near_end
from .link import ControlLink, LinkClosed
from .liveness import PING_INTERVAL_S, Liveness
from .messages import (
    Begun,
    Change,
    DataHello,
    Finish,
    Message,
    Open,
    Ping,
    Ready,
    Refuse,
    Report,
    SessionClosed,
    SessionOpened,
    Start,
    Stop,
)
from .plan import PROBE_SESSION, SECOND_NS, Direction, End, Plan
from .sampler import Sampler
from .samples import NicFacts, Reason, RunEnd, Sample, SocketFacts

GREETING_DEADLINE_S: Final = 5.0
IDLE_DEADLINE_S: Final = 60.0
PREPARING_DEADLINE_S: Final = 30.0
_OVERTIME_NS: Final = 30 * SECOND_NS  # a near end that never says stop is cut off this long after its duration
_MOST_UNSENT_BYTES: Final = 8 << 20  # half a minute of the largest samples

Registry = dict[bytes, "FarRun"]


async def serve_client(
    link: ControlLink, registry: Registry, log: Callable[[str], None], key: Key | None = None
) -> None:
    """Serve one near end from its greeting to the end of its run; never raises at what it does.

    Without the key, where there is one, it gets no further than the greeting.
    """
    try:
        async with asyncio.timeout(GREETING_DEADLINE_S):
            facts = await greet_near_end(link, key)
        async with asyncio.timeout(IDLE_DEADLINE_S):
            message = await link.receive()
        if isinstance(message, Open):
            await _serve_run(link, message.plan, facts.nic, registry, log)
    except TimeoutError:
        log("a client said nothing in time")
    except LinkClosed:
        pass  # it came to look, or has seen enough
    except LinkgaugeError as error:
        log(f"a client was dropped: {error}")
    finally:
        await link.aclose()


async def _serve_run(
    link: ControlLink, plan: Plan, nic: NicFacts | None, registry: Registry, log: Callable[[str], None]
) -> None:
    run: FarRun | None = None
    try:
        run = FarRun(link, plan, nic)
        async with run.pool:
            registry[run.name] = run
            link.send(Ready(run.told.hex()))
            end = await run.carry_out()
            log(f"run ended: {end.reason}: {end.detail}")
    except (LinkgaugeError, OSError) as error:
        remedy = "; raise the limit there (ulimit -n)" if getattr(error, "errno", None) == errno.EMFILE else ""
        link.try_send(Refuse(f"the run could not be prepared: {error}{remedy}"))
        raise LinkgaugeError(str(error)) from error
    finally:
        if run is not None:
            registry.pop(run.name, None)


class FarRun:
    """One run as the far end carries it out."""

    def __init__(self, link: ControlLink, plan: Plan, nic: NicFacts | None) -> None:
        self.told = secrets.token_bytes(TOKEN_BYTES)
        self._gate = Gate(RunSecret(link.agreed, self.told))
        self._link = link
        self._plan = plan
        self._ending: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self.pool = Pool(End.FAR, plan, self._worker_said, self._worker_lost)
        self._sampler = Sampler(End.FAR, plan, self.pool.counters, None if nic is None else nic.name)
        self._sampling: asyncio.Task[None] | None = None
        self._generation = 0

    @property
    def name(self) -> bytes:
        """What the run's connections call it."""
        return self._gate.secret.name

    async def carry_out(self) -> RunEnd:
        """Serve the near end until the run ends, and finish in order: last sample, reason, no more."""
        tasks = [
            asyncio.create_task(self._listen()),
            asyncio.create_task(self._watch()),
        ]
        try:
            end = await self._ending
        finally:
            for task in [*tasks, *([] if self._sampling is None else [self._sampling])]:
                task.cancel()
        if self._sampling is not None:
            last = self._sampler.take()
            if last is not None:
                self._report(last)
        self._link.try_send(Finish(end))
        return end

    def end(self, reason: Reason, detail: str) -> None:
        """End the run; the first reason stands."""
        if not self._ending.done():
            self._ending.set_result(RunEnd(reason, detail))

    async def adopt(self, sock: socket.socket, hello: DataHello) -> None:
        """Hand an accepted data connection to the worker that hosts its session.

        Raises RemoteProtocolError where its token is not good, or has been used.
        """
        if hello.session == PROBE_SESSION and not self._plan.probe:
            raise RemoteProtocolError("the connection of a probe that the plan does not have")
        secret = self._gate.open(hello.direction, hello.session, hello.generation, hello.token)
        if secret is None:
            raise RemoteProtocolError("a data connection with a token that is not good, or no longer")
        command: WorkerEvent = {
            "command": "adopt",
            "generation": hello.generation,
            "window_bytes": hello.window_bytes,
            "secret": secret.hex(),
        }
        await self.pool.command(hello.direction, hello.session, command, sock.detach())

    async def _listen(self) -> None:
        try:
            async with asyncio.timeout(PREPARING_DEADLINE_S):
                while self._sampling is None:
                    self._handle(await self._link.receive())
            while True:
                self._handle(await self._link.receive())
        except TimeoutError:
            self.end(Reason.FAILED, "the near end did not start the run in time")
        except LinkClosed as error:
            self.end(Reason.PEER_LOST, f"the near end is gone: {error}")
        except LinkgaugeError as error:
            self.end(Reason.FAILED, str(error))

    def _handle(self, message: Message) -> None:
        if isinstance(message, Start):
            self._sampler.start()
            self.pool.go()
            self._link.send(Begun())
            self._sampling = asyncio.create_task(self._sampler.run(self._report, None))
        elif isinstance(message, Change):
            self._keep(message)
        elif isinstance(message, Stop):
            self.end(message.end.reason, message.end.detail)

    def _keep(self, change: Change) -> None:
        if change.generation < self._generation:
            raise RemoteProtocolError("the near end went back to an older generation of sessions")
        self._generation = change.generation
        self.pool.keep(change)

    def _report(self, sample: Sample) -> None:
        self._link.try_send(Report(sample))
        if self._link.unsent_bytes > _MOST_UNSENT_BYTES:
            self.end(Reason.PEER_LOST, "the near end does not read its samples")

    async def _watch(self) -> None:
        """Notice a near end that vanished without a word, or that never says stop."""
        liveness = Liveness(time.monotonic_ns())
        serial = 0
        while True:
            await asyncio.sleep(PING_INTERVAL_S)
            serial += 1
            self._link.try_send(Ping(serial))
            counters = self.pool.counters
            lost_ns = liveness.lost_for_ns(time.monotonic_ns(), self._link.heard_ns, counters.total_bytes())
            if lost_ns is not None:
                self.end(Reason.PEER_LOST, f"the near end has been silent for {lost_ns / SECOND_NS:.0f} s")
            duration_ns = self._plan.duration_ns
            started = self._sampling is not None
            if started and duration_ns is not None and self._sampler.elapsed_ns > duration_ns + _OVERTIME_NS:
                self.end(Reason.FAILED, "the near end did not stop when the run's duration was up")

    def _worker_said(self, event: WorkerEvent) -> None:
        if event.get("session", event.get("facts", {}).get("session")) == PROBE_SESSION:
            return  # the near end sees its own end of it
        if event["event"] == "opened":
            self._link.try_send(SessionOpened(decode(SocketFacts, event["facts"])))
        else:
            direction, session = Direction(event["direction"]), event["session"]
            self._link.try_send(SessionClosed(direction, session, event["generation"], event["why"]))

    def _worker_lost(self, why: str) -> None:
        self.end(Reason.WORKER_LOST, f"at the far end {why}")
