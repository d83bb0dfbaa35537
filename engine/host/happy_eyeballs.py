"""Happy Eyeballs (RFC 8305): attempts at several addresses of one name, a moment apart; the first success wins.

A name often has addresses that do not answer, such as IPv6 without a route. Tried one after the other, each would
cost its whole deadline.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain, zip_longest
from typing import Any, Final, TypeVar

from .event_loop import await_shielded

T = TypeVar("T")

ATTEMPT_DELAY_S: Final = 0.25  # RFC 8305, section 8: Connection Attempt Delay

Address = tuple[int, tuple[Any, ...]]
"""An address family, and a socket address of it."""


def resolve_addresses(host: str, port: int) -> list[Address]:
    """Return the TCP addresses of a name, families in turn, each once; blocks. Raises OSError or UnicodeError."""
    infos = socket.getaddrinfo(resolvable(host), port, type=socket.SOCK_STREAM)
    return interleave_families((family, address) for family, _type, _protocol, _name, address in infos)


def of_ip_version(addresses: Iterable[Address], version: int | None) -> list[Address]:
    """Return the addresses of an IP version, 4 or 6; all if it is None."""
    family = {None: None, 4: socket.AF_INET, 6: socket.AF_INET6}[version]
    return [each for each in addresses if family in {None, each[0]}]


def resolvable(host: str) -> str | bytes:
    """Return a host as `getaddrinfo` takes it: Python would encode the name of an interface like a domain's."""
    return os.fsencode(host) if "%" in host else host


def interleave_families(addresses: Iterable[Address]) -> list[Address]:
    """Return the addresses, families in turn, in the resolver's order otherwise (RFC 8305, section 4)."""
    by_family: dict[int, list[Address]] = {}
    for each in dict.fromkeys(addresses):
        by_family.setdefault(each[0], []).append(each)
    return [each for each in chain.from_iterable(zip_longest(*by_family.values())) if each is not None]


async def first_success(
    addresses: Iterable[Address],
    attempt: Callable[[Address], Awaitable[T]],
    discard: Callable[[T], None],
    failures: dict[Address, OSError],
) -> T | None:
    """Return the result of the first attempt that succeeds; None if all have failed.

    The next attempt begins when one has failed or has taken 250 ms. All others have ended when this returns.

    Args:
        addresses: the addresses in the order to try them.
        attempt: connects to an address; raises OSError.
        discard: closes the result of an attempt that was not the first.
        failures: receives why an attempt failed, by its address.
    """
    waiting = iter(addresses)
    running: dict[asyncio.Task[T], Address] = {}
    winner: asyncio.Task[T] | None = None
    try:
        while winner is None:
            address = next(waiting, None)
            if address is not None:
                running[asyncio.ensure_future(attempt(address))] = address
            elif not running:
                return None
            timeout_s = None if address is None else ATTEMPT_DELAY_S
            done, _ = await asyncio.wait(running, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    task.result()
                except OSError as error:
                    failures[running.pop(task)] = error
                else:
                    winner = winner or task
        await await_shielded(_end(running, winner, discard))
    except BaseException:
        await await_shielded(_end(running, None, discard))
        raise
    return winner.result()


async def _end(
    running: dict[asyncio.Task[T], Address], winner: asyncio.Task[T] | None, discard: Callable[[T], None]
) -> None:
    """End all attempts but the winner, and discard the result of each that has succeeded all the same."""
    losers = running.keys() - {winner}
    for task in losers:
        del running[task]
        task.cancel()
    for outcome in await asyncio.gather(*losers, return_exceptions=True):
        if not isinstance(outcome, BaseException):
            discard(outcome)
