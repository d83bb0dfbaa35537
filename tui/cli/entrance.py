"""How a far end is got into: its listening socket, the key, the certificate, and the words for a near end."""

import asyncio
import os
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from ...engine.auth import Key, KeyProblem
from ...engine.endpoint import Endpoint, listen
from ...engine.greeting import KEY_VARIABLE, is_loopback
from ...engine.journal import Entry, Log
from ...engine.limits import LimitProblem, Limits
from ...engine.plan import DEFAULT_PORT, Peer
from ...engine.service import inherited_listener
from ...engine.tls import Certificate, in_words
from ..keys import key_of_environment, read_key_file
from .service import Service


@dataclass(frozen=True, slots=True)
class Entrance:
    """Where it listens, what it allows, the key that clients must have, if any, and what TLS is had with."""

    listener: socket.socket
    limits: Limits
    key: Key | None = None
    is_new: bool = False  # the key was made just now
    certificate: Certificate | None = None

    @property
    def tls_option(self) -> str:
        """What a near end gives to trust the certificate, with a space before it; empty without one."""
        if self.certificate is None:
            return ""
        return f" --tls-fingerprint {in_words(self.certificate.fingerprint)}"

    def command(self, service: Service) -> str:
        """Return what is to be pasted at the near end; a key that was made now goes with it."""
        port = self.listener.getsockname()[1]
        known_as = socket.gethostname() if service.bind is None or _is_any(service.bind) else service.bind
        peer = known_as if port == DEFAULT_PORT else str(Peer(known_as, port))
        key = f"{KEY_VARIABLE}={self.key.reveal()} " if self.key is not None and self.is_new else ""
        return f"{key}linkgauge check auto {peer}{self.tls_option}"


def open_entrance(service: Service, log: Log) -> Entrance:
    """Read what a far end is started with, and listen; raise LinkgaugeError for what cannot be."""
    limits = service.limits.read()
    given = None if service.key_file is None else read_key_file(Path(service.key_file))
    given = given or key_of_environment(os.environ)
    os.environ.pop(KEY_VARIABLE, None)  # what is started from here on has no use for it
    certificate = None if service.tls is None else Certificate.load(*map(Path, service.tls))
    listener = inherited_listener(os.environ) or listen(service.bind, service.port)
    if service.is_open:
        text = "no key is asked for (--open): whoever reaches this port can have load sent to and from this host"
        log(Entry("open", text))
        return Entrance(listener, limits, certificate=certificate)
    if given is not None or is_loopback(listener.getsockname()[0]):
        return Entrance(listener, limits, given, certificate=certificate)
    return Entrance(listener, limits, Key.new(), is_new=True, certificate=certificate)


def _is_any(bind: str) -> bool:
    try:
        return ip_address(bind).is_unspecified
    except ValueError:
        return False


async def drain(endpoint: Endpoint, at_once: asyncio.Event, log: Log) -> None:
    """Wait for the runs that go on, as long as the limit says, or until it is to be at once."""
    deadline_s = endpoint.admission.limits.drain_s
    log(Entry("draining", f"no new clients; a run that goes on has {deadline_s} s to end", deadline_s=deadline_s))
    waits = [asyncio.create_task(endpoint.drain(deadline_s)), asyncio.create_task(at_once.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.wait(waits)


def reload(service: Service, endpoint: Endpoint, log: Log) -> None:
    """Read the limits and the key file again; one that is not as it should be changes nothing, and is told."""
    try:
        endpoint.admission.limits = service.limits.read()
    except LimitProblem as error:
        log(Entry("not_reloaded", f"the limits stay as they were: {error}"))
    else:
        log(Entry("reloaded", "the limits were read again: they are in force for who comes from here on"))
    if service.key_file is not None and not service.is_open:
        _reload_key(Path(service.key_file), endpoint, log)


def _reload_key(path: Path, endpoint: Endpoint, log: Log) -> None:
    try:
        endpoint.key = read_key_file(path)
    except KeyProblem as error:
        log(Entry("not_reloaded", f"the key stays as it was: {error}"))
        return
    log(Entry("reloaded", "the key file was read again: who comes from here on needs that key; runs go on"))
