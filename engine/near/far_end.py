"""The far end of a peer, brought up where it is not there yet: on loopback, or through ssh."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from ..far.loopback import embedded_endpoint
from ..model.peer import Peer
from ..ssh.session import PromptCallback, open_ssh_far_end
from .connect import FarEnd


@asynccontextmanager
async def open_far_end(peer: Peer, prompt: PromptCallback | None = None) -> AsyncGenerator[FarEnd]:
    """Give what runs against a peer connect to, for as long as the block lasts; `ask` as in `ssh_far_end`.

    Raises PeerError or WorkerError where it does not come up; whether a peer that is elsewhere answers is not
    looked at.
    """
    if peer.is_loopback:
        async with embedded_endpoint() as embedded:
            yield embedded
    elif peer.ssh is not None:
        async with open_ssh_far_end(peer, prompt) as started:
            yield started
    else:
        yield peer
