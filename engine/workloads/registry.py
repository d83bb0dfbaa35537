"""The registry of session classes: the sender and the receiver of each workload.

A new workload registers itself: `register_workload` (engine/model/workload.py) for the plan, the command line, the
app and the files, and `register_sessions` here for the classes that move the bytes.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from ..model.plan import Dialect
from ..model.workload import Workload
from .request_response import FetchRequester, FetchResponder, RrRequester, RrResponder
from .session import Session, SessionContext, WorkerResources
from .stream import StreamReceiver, StreamSender

SessionFactory = Callable[[socket.socket, SessionContext, WorkerResources], Session]


@dataclass(frozen=True, slots=True)
class SessionTypes:
    """The factories of a workload's sessions: at the sender of the payload, and at its receiver.

    The payload of transactions is their responses: the responder is the sender.
    """

    sender: SessionFactory
    receiver: SessionFactory


_registry: dict[tuple[Workload, Dialect], SessionTypes] = {}


def register_sessions(
    workload: Workload,
    *,
    sender: SessionFactory,
    receiver: SessionFactory,
    dialect: Dialect = Dialect.LINKGAUGE,
) -> None:
    """Register the sessions of a workload in a dialect; raise ValueError if it has some already."""
    if (workload, dialect) in _registry:
        raise ValueError(f"{workload} has its sessions already")
    _registry[workload, dialect] = SessionTypes(sender, receiver)


def sessions_of(workload: Workload, dialect: Dialect = Dialect.LINKGAUGE) -> SessionTypes:
    """Return the session factories of a workload in a dialect; raise KeyError if none are registered."""
    return _registry[workload, dialect]


def _create_datagram_sender(sock: socket.socket, context: SessionContext, resources: WorkerResources) -> Session:
    from .udp.sender import DatagramSender

    return DatagramSender(sock, context, resources)


def _create_datagram_receiver(sock: socket.socket, context: SessionContext, resources: WorkerResources) -> Session:
    from .udp.receiver import DatagramReceiver

    return DatagramReceiver(sock, context, resources)


def _create_iperf3_sender(sock: socket.socket, context: SessionContext, resources: WorkerResources) -> Session:
    from .iperf3.datagram_sessions import Iperf3Sender

    return Iperf3Sender(sock, context, resources)


def _create_iperf3_receiver(sock: socket.socket, context: SessionContext, resources: WorkerResources) -> Session:
    from .iperf3.datagram_sessions import Iperf3Receiver

    return Iperf3Receiver(sock, context, resources)


def _create_message_sender(sock: socket.socket, context: SessionContext, resources: WorkerResources) -> Session:
    from .framed.message_sender import MessageSender

    return MessageSender(sock, context, resources)


def _create_frame_receiver(sock: socket.socket, context: SessionContext, resources: WorkerResources) -> Session:
    from .framed.frame_receiver import FrameReceiver

    return FrameReceiver(sock, context, resources)


register_sessions(Workload.STREAM, sender=StreamSender, receiver=StreamReceiver)
register_sessions(Workload.STREAM, sender=StreamSender, receiver=StreamReceiver, dialect=Dialect.IPERF3)
for _dialect in (Dialect.BROWSER, Dialect.LIBRESPEED):
    register_sessions(Workload.STREAM, sender=_create_message_sender, receiver=StreamReceiver, dialect=_dialect)
register_sessions(
    Workload.STREAM, sender=_create_message_sender, receiver=_create_frame_receiver, dialect=Dialect.NDT7
)
# Imported for the runs that need them: they are a tenth of a worker's modules.
register_sessions(Workload.UDP, sender=_create_datagram_sender, receiver=_create_datagram_receiver)
register_sessions(
    Workload.UDP, sender=_create_iperf3_sender, receiver=_create_iperf3_receiver, dialect=Dialect.IPERF3
)
register_sessions(Workload.RR, sender=RrResponder, receiver=RrRequester)
register_sessions(Workload.FETCH, sender=FetchResponder, receiver=FetchRequester)
