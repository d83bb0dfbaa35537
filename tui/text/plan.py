"""How a plan has its payload carried, where that is not as always, in words."""

from typing import Final

from ...engine.model.plan import MIB, SECOND_NS, Plan, SocketOptions
from ...engine.model.workload import Workload
from .numbers import NBSP, sanitize, window

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
    asked = [f"{before}{sanitize(str(value))}" for before, value in named.items() if value is not None]
    return [*asked, *(["nodelay"] if options.nodelay else [])]


def non_default_options_text(plan: Plan) -> str:
    """Return what of a plan is not as always and has no other place on the screen; empty where all of it is."""
    workers = f"{plan.workers}{NBSP}worker{'' if plan.workers == 1 else 's'}" if plan.workers else ""
    is_block_used = plan.workload is Workload.STREAM and plan.block_bytes != MIB
    told = [
        str(plan.mode or ""),
        f"blocks of {window(plan.block_bytes)}" if is_block_used else "",
        *socket_words(plan.socket),
        workers,
        core_affinity_text(plan),
        f"a sample every {plan.interval_ns / SECOND_NS:g}{NBSP}s" if plan.interval_ns != _INTERVAL_NS else "",
        _warm_up(plan),
    ]
    return ", ".join(filter(None, told))


def _warm_up(plan: Plan) -> str:
    if plan.warmup_auto:
        return "warm-up until the rate has settled"
    return "" if plan.warmup_ns is None else f"warm-up {plan.warmup_ns / SECOND_NS:g}{NBSP}s"


# MERGED FROM tui/cores_text:
# On which cores a plan's workers keep, in words.


def core_affinity_text(plan: Plan) -> str:
    """Return on which cores a plan's workers keep: `cores 0-1 at both ends`; empty where the kernel may choose."""
    near, far = _ascending(plan.near_cores), _ascending(plan.far_cores)
    if near and near == far:
        return f"{_listed(near)} at both ends"
    return ", ".join(f"{_listed(each)} at the {end} end" for end, each in (("near", near), ("far", far)) if each)


def _ascending(cores_: tuple[int, ...] | None) -> list[int]:
    return sorted(set(cores_ or ()))


def _listed(ascending: list[int]) -> str:
    is_row = len(ascending) > 1 and ascending[-1] - ascending[0] == len(ascending) - 1
    named = f"{ascending[0]}-{ascending[-1]}" if is_row else ", ".join(map(str, ascending))
    return f"core{'' if len(ascending) == 1 else 's'}{NBSP}{named}"
