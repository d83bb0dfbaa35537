"""How a plan has its payload carried, where that is not as always, in words."""

from typing import Final

from ..engine.plan import MIB, SECOND_NS, Plan, SocketOptions, Workload
from .cores_text import cores
from .format import GROUP, plain, window

_INTERVAL_NS: Final = Plan().interval_ns


def socket_words(options: SocketOptions) -> list[str]:
    """Return what is asked of every data connection: `cubic`, `MSS 1400`, `DSCP 46`, `from 10.0.0.2`, `nodelay`."""
    named = {
        "": options.congestion,
        "MSS ": options.mss_bytes,
        "DSCP ": options.dscp,
        "from ": options.source,
        "on ": options.device,
    }
    asked = [f"{before}{plain(str(value))}" for before, value in named.items() if value is not None]
    return [*asked, *(["nodelay"] if options.nodelay else [])]


def carried(plan: Plan) -> str:
    """Return what of a plan is not as always and has no other place on the screen; empty where all of it is."""
    workers = f"{plan.workers}{GROUP}worker{'' if plan.workers == 1 else 's'}" if plan.workers else ""
    is_block_used = plan.workload is Workload.STREAM and plan.block_bytes != MIB
    told = [
        str(plan.mode or ""),
        f"blocks of {window(plan.block_bytes)}" if is_block_used else "",
        *socket_words(plan.socket),
        workers,
        cores(plan),
        f"a sample every {plan.interval_ns / SECOND_NS:g}{GROUP}s" if plan.interval_ns != _INTERVAL_NS else "",
        _warm_up(plan),
    ]
    return ", ".join(filter(None, told))


def _warm_up(plan: Plan) -> str:
    if plan.warmup_auto:
        return "warm-up until the rate has settled"
    return "" if plan.warmup_ns is None else f"warm-up {plan.warmup_ns / SECOND_NS:g}{GROUP}s"
