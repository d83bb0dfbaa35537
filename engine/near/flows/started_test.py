"""A test that the endpoint has started, without sessions of payload: other exchanges go over its secret."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from ...control.connection import ControlConnection
from ...model.errors import PeerError, PeerRefused
from ...model.plan import Plan
from ...protocol.messages import Begun, Finish, Message, Start
from ...protocol.tokens import RunSecret
from ..connect import FarEnd
from ..path_mtu import READY_DEADLINE_S, prepare_path_session


@asynccontextmanager
async def started_test(
    control: ControlConnection, peer: FarEnd, plan: Plan, on_message: Callable[[Message], None]
) -> AsyncGenerator[RunSecret]:
    """Start a test at the endpoint, and yield its secret; meanwhile pass the endpoint's messages on.

    Raises PeerRefused if the endpoint declines or ends the test, PeerError if it does not begin.
    """
    try:
        async with asyncio.timeout(READY_DEADLINE_S):
            secret = await prepare_path_session(control, peer, plan)
            control.send(Start())
            while not isinstance(message := await control.receive(), Begun):
                if isinstance(message, Finish):
                    raise PeerRefused(f"{peer} ended the measurement before it began: {message.end.detail}")
    except TimeoutError as error:
        raise PeerError(f"{peer} did not begin in {READY_DEADLINE_S:g} s; try again") from error
    main = asyncio.current_task()
    ended: list[Exception] = []

    async def listen() -> None:
        """Take in the endpoint's messages; interrupt the test if the endpoint ends it."""
        try:
            while not isinstance(message := await control.receive(), Finish):
                on_message(message)
            ended.append(PeerRefused(f"{peer} ended the measurement: {message.end.detail}"))
        except Exception as error:  # noqa: BLE001 - raised in the main task
            ended.append(error)
        if main is not None:
            main.cancel()

    listening = asyncio.create_task(listen())
    try:
        yield secret
    except asyncio.CancelledError:
        if ended and main is not None and main.uncancel() == 0:
            raise ended[0] from None
        raise
    finally:
        listening.cancel()
