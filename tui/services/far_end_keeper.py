"""The far end that the app talks to, kept up from one run to the next."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

from ...engine.model.peer import Peer, SshSettings
from ...engine.near.connect import FarEnd, open_far_end
from ...engine.ssh.session import PromptCallback, SshFarEnd
from .credentials import with_access


class FarEndKeeper:
    """Keeps the far end of one peer up, the one last asked for: a person logs in once, not for each run.

    `ask` is what ssh's questions are asked with, `ssh` how it is started for peers that do not say.
    """

    def __init__(self, prompt: PromptCallback, ssh: SshSettings | None = None) -> None:
        self._ask = prompt
        self._ssh = ssh or SshSettings()
        self._peer: Peer | None = None
        self._far: FarEnd | None = None
        self._stack = AsyncExitStack()
        self._order = asyncio.Lock()

    async def get_far_end(self, peer: Peer) -> FarEnd:
        """Return a peer's far end, brought up where it is not; raise what `far_end_of` does."""
        async with self._order:
            if self._far is not None and self._peer == peer and self._is_up:
                return self._far
            await self._let_go()
            if not peer.is_loopback and peer.ssh is None:
                return with_access(peer)
            self._far = await self._stack.enter_async_context(open_far_end(self._told(peer), self._ask))
            self._peer = peer
            return self._far

    async def aclose(self) -> None:
        """Let it go."""
        async with self._order:
            await self._let_go()

    @property
    def _is_up(self) -> bool:
        return not isinstance(self._far, SshFarEnd) or self._far.is_up

    def _told(self, peer: Peer) -> Peer:
        if peer.ssh is None:
            return peer
        return replace(peer, ssh=replace(self._ssh, user=peer.ssh.user, port=peer.ssh.port))

    async def _let_go(self) -> None:
        self._far = self._peer = None
        await self._stack.aclose()
