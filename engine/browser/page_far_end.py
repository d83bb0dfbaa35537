"""A page that takes part in the tests of this host, as the far end of its runs: `async with open_page_run(…)`."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..control.handshake import HandshakeResult
from ..model.peer import Peer
from ..model.plan import Mode, Plan
from ..near.base_run import ExpectationFinder, driven, no_expectation
from ..near.foreign.unseen_far_end import prepared
from .page_messages import with_page
from .page_run import PageLink, PageRun


@dataclass(slots=True, eq=False)
class PageFarEnd:
    """A page that has joined, and its run at this moment.

    `describe` returns the descriptions of this host, by its interface to the page, and of what the page tells. It
    raises PeerUnreachable if the page has gone.
    """

    peer: Peer
    link: PageLink
    describe: Callable[[], Awaitable[HandshakeResult]]
    run: PageRun | None = None


@asynccontextmanager
async def open_page_run(
    plan: Plan,
    page: PageFarEnd,
    *,
    expectation_for: ExpectationFinder = no_expectation,
    mode: Mode | None = None,
) -> AsyncGenerator[PageRun]:
    """Start a run with a page and yield it; on leaving the block, stop it and wait for its end.

    Args:
        plan: The run to carry out; `out` is what the page downloads. It measures latency in any case.
        page: The page, which has no run yet.
        expectation_for: Returns the rates to expect under given settings.
        mode: How this end moves payload if the plan does not name a mode; None copies.

    Raises:
        PlanError: A page cannot carry out the plan, or this machine lacks something for it.
        PeerError: The page has gone, or does not open its connections.
        WorkerError: A worker process does not start.
    """
    async with prepared(plan, page.peer):
        run = PageRun(with_page(plan), page.peer, await page.describe(), page.link, expectation_for, mode)
        page.run = run
        try:
            async with run.pool:
                try:
                    async with driven(run):
                        yield run
                finally:
                    run.release()  # before the pool closes the counters
        finally:
            page.run = None
