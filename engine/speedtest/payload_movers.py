"""The payload of sessions with TLS, which only the process that has its keys can move."""

import os
from collections.abc import Callable

from ..near.foreign.metered_session import MeteredConnection, MeteredReceiver
from .http_wire import Wire


async def receive_payload(wire: Wire, metered: MeteredConnection, look: Callable[[bytes], None]) -> None:
    """Receive and count payload until the session is over or its stream ends; pass each piece to `look`."""
    session = metered.session
    while not metered.over.is_set():
        data = await wire.peek()
        if not data:
            return
        await wire.take(len(data))
        if isinstance(session, MeteredReceiver):  # as its direction says
            session.count(len(data))
        look(data)


async def send_payload(wire: Wire, metered: MeteredConnection, head: bytes, body_bytes: int) -> None:
    """Send the same message again and again until the session is over."""
    message = head + os.urandom(body_bytes)
    while not metered.over.is_set():
        await wire.send(message)
