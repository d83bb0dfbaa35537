"""A plan's options that differ from the default, in words: socket options, workers, cores, warm-up."""

from dataclasses import replace
from typing import Final

from ...engine.model.plan import MIB, SECOND_NS, Plan, Settings, SocketOptions
from ...engine.model.workload import Workload
from .numbers import NBSP, duration, quantity, sanitize, sending_rate, settings_change, window

_INTERVAL_NS: Final = Plan().interval_ns


def socket_words(options: SocketOptions) -> list[str]:
    """Return the socket options: `cubic`, `MSS 1400`, `DSCP 46`, `from 10.0.0.2`, `on eth0`, `nodelay`."""
    values = {
        "": options.congestion,
        "MSS ": options.mss_bytes,
        "DSCP ": options.dscp,
        "from ": options.source,
        "on ": options.device,
    }
    words = [f"{prefix}{sanitize(str(value))}" for prefix, value in values.items() if value is not None]
    return [*words, *(["nodelay"] if options.nodelay else [])]


def non_default_options_text(plan: Plan) -> str:
    """Return the options that differ from the default and have no other place on the screen; empty for none.

    All responsiveness tests have the same interval and warm-up.
    """
    workers = quantity(plan.workers, "worker") if plan.workers else ""
    is_block_used = plan.workload is Workload.STREAM and plan.block_bytes != MIB
    parts = [
        str(plan.mode or ""),
        f"blocks of {window(plan.block_bytes)}" if is_block_used else "",
        *socket_words(plan.socket),
        workers,
        core_affinity_text(plan),
        *([] if plan.has_phases else [_interval(plan), _warm_up(plan)]),
    ]
    return ", ".join(filter(None, parts))


def plan_change(before: Plan, settings: Settings, after: Plan) -> str:
    """Return what the next test has changed: `udp, 4 sessions, 10 s`; empty for nothing.

    What another workload brings with it is part of its name: only the rate of datagrams is not.

    Args:
        before: The plan of the test that is shown.
        settings: Its settings, which may have been changed.
        after: The plan of the next test.
    """
    words: list[str] = []
    if after.workload is not before.workload:
        words.append(str(after.workload))
        common = replace(after.settings, direction=settings.direction, sessions=settings.sessions)
        words.append(settings_change(common, after.settings))
        words.append(sending_rate(after.settings) if after.workload.is_datagram else "")
    else:
        words.append(settings_change(settings, after.settings))
    if after.duration_ns != before.duration_ns:
        words.append(duration(after.duration_ns))
    if after.probe is not before.probe and not after.workload.is_transactional:
        words.append("latency" if after.probe else "no latency")
    if after.path is not before.path:
        words.append("hops" if after.path else "no hops")
    return ", ".join(filter(None, words))


def _interval(plan: Plan) -> str:
    return f"interval {plan.interval_ns / SECOND_NS:g}{NBSP}s" if plan.interval_ns != _INTERVAL_NS else ""


def _warm_up(plan: Plan) -> str:
    if plan.warmup_auto:
        return "automatic warm-up"
    return "" if plan.warmup_ns is None else f"warm-up {plan.warmup_ns / SECOND_NS:g}{NBSP}s"


def core_affinity_text(plan: Plan) -> str:
    """Return the cores that workers are pinned to: `cores 0-1 on both hosts`; empty for none."""
    near, far = sorted(set(plan.near_cores or ())), sorted(set(plan.far_cores or ()))
    if near and near == far:
        return f"{_core_list(near)} on both hosts"
    ends = (("local", near), ("remote", far))
    return ", ".join(f"{end} {_core_list(cores)}" for end, cores in ends if cores)


def _core_list(cores: list[int]) -> str:
    """Return ascending core numbers in words, consecutive ones as a range."""
    is_range = len(cores) > 1 and cores[-1] - cores[0] == len(cores) - 1
    text = f"{cores[0]}-{cores[-1]}" if is_range else ", ".join(map(str, cores))
    return f"core{'' if len(cores) == 1 else 's'}{NBSP}{text}"
