"""Which sessions carry a workload at its two ends.

A new workload registers itself: `register_workload` (engine/model/workload.py) for what the plan, the command line,
the app and the files need to know, and `register_sessions` here for what moves the bytes.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from ..model.workload import Workload
from .fetch import FetchRequester, FetchResponder
from .request_response import RrRequester, RrResponder
from .session import Session, SessionContext, WorkerResources
from .stream import StreamReceiver, StreamSender

SessionFactory = Callable[[socket.socket, SessionContext, WorkerResources], Session]


@dataclass(frozen=True, slots=True)
class SessionTypes:
    """What makes the session of a connected socket: at the end that sends payload, and at the one that receives it.

    Of transactions the payload is the responses, so that the responder is the sender.
    """

    sender: SessionFactory
    receiver: SessionFactory


_registry: dict[Workload, SessionTypes] = {}


def register_sessions(workload: Workload, *, sender: SessionFactory, receiver: SessionFactory) -> None:
    """Register what carries a workload; raise ValueError where something does already."""
    if workload in _registry:
        raise ValueError(f"{workload} has its sessions already")
    _registry[workload] = SessionTypes(sender, receiver)


def sessions_of(workload: Workload) -> SessionTypes:
    """Return what carries a workload; raise KeyError where nothing is registered for it."""
    return _registry[workload]


register_sessions(Workload.STREAM, sender=StreamSender, receiver=StreamReceiver)
register_sessions(Workload.RR, sender=RrResponder, receiver=RrRequester)
register_sessions(Workload.FETCH, sender=FetchResponder, receiver=FetchRequester)
