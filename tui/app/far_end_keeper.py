"""The far end of the app, kept up from one run to the next."""

import asyncio
import logging
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from ...engine.model.peer import Peer, SshSettings

if TYPE_CHECKING:
    from ...engine.near.connect import FarEnd
    from ...engine.ssh.ssh_far_end import PromptCallback

_log = logging.getLogger(__name__)


class FarEndKeeper:
    """Keeps the far end of the latest peer up, so that the user logs in once and not for each run.

    `prompt` asks the user the questions of ssh. `ssh` has the settings for every ssh peer except user and port,
    which the peer has. You must call `aclose` at the end. The engine is imported with the first far end: the app's
    first frame does not wait for it.
    """

    def __init__(self, prompt: "PromptCallback", ssh: SshSettings | None = None) -> None:
        self._prompt = prompt
        self._ssh = ssh or SshSettings()
        self._peer: Peer | None = None
        self._far: FarEnd | None = None
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()

    async def get_far_end(self, peer: Peer) -> "FarEnd":
        """Return the far end of a peer, started if it is not up. Raises the errors of `open_far_end`."""
        from ...engine.near.connect import open_far_end
        from ..session.credentials import with_access

        async with self._lock:
            if self._far is not None and self._peer == peer and self._is_up:
                return self._far
            await self._close()
            if not peer.is_loopback and peer.ssh is None:
                return with_access(peer)
            self._far = await self._stack.enter_async_context(open_far_end(self._with_ssh(peer), self._prompt))
            self._peer = peer
            _log.debug("far end of %s is up", peer)
            return self._far

    async def aclose(self) -> None:
        """Close the far end."""
        async with self._lock:
            await self._close()

    @property
    def _is_up(self) -> bool:
        from ...engine.ssh.ssh_far_end import SshFarEnd

        return not isinstance(self._far, SshFarEnd) or self._far.is_up

    def _with_ssh(self, peer: Peer) -> Peer:
        if peer.ssh is None:
            return peer
        return replace(peer, ssh=replace(self._ssh, user=peer.ssh.user, port=peer.ssh.port))

    async def _close(self) -> None:
        if self._peer is not None:
            _log.debug("closing the far end of %s", self._peer)
        self._far = self._peer = None
        await self._stack.aclose()
