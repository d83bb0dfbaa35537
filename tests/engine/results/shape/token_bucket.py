"""A token bucket without a network: the arrivals of a burst, computed."""

import random
from collections.abc import Sequence

from linkgauge.engine.results.shape.burst_reading import Burst

FRAME_BYTES = 1_514


def sending_times(
    head: int, tail: int, line_bit_s: float, tail_bit_s: float, frame: int = FRAME_BYTES
) -> list[float]:
    """Return when datagrams leave, in nanoseconds: the first ones at the line's rate, the others at another one."""
    times, at_ns = list[float](), 0.0
    for number in range(head + tail):
        times.append(at_ns)
        at_ns += frame * 8e9 / (line_bit_s if number < head else tail_bit_s)
    return times


def pass_bucket(
    times: Sequence[float],
    cir_bit_s: float,
    cbs_bytes: float,
    queue_bytes: float = 0.0,
    *,
    level_bytes: float | None = None,
    frame: int = FRAME_BYTES,
    line_bit_s: float | None = None,
    jitter_ns: float = 0.0,
    loss: float = 0.0,
    seed: int = 1,
) -> Burst:
    """Return a burst behind a bucket of CBS bytes, which refills at CIR. It is full unless `level_bytes` are in it.

    Without a queue it is a policer, with one a shaper. `line_bit_s` is the rate of a line in front of it, whose
    queue has no end. A frame is late by up to `jitter_ns`, and is lost behind the bucket with a chance of `loss`.
    """
    draw = random.Random(seed)  # noqa: S311
    tokens = cbs_bytes if level_bytes is None else min(cbs_bytes, level_bytes)
    filled_ns = line_free_ns = 0.0
    came: list[tuple[int, float]] = []
    for place, sent_ns in enumerate(times):
        at_ns = sent_ns
        if line_bit_s is not None:
            line_free_ns = at_ns = max(line_free_ns, at_ns) + frame * 8e9 / line_bit_s
        leaves_ns = max(at_ns, filled_ns)
        level = min(cbs_bytes, tokens + (leaves_ns - filled_ns) * cir_bit_s / 8e9)
        if level < frame:
            leaves_ns += (frame - level) * 8e9 / cir_bit_s
            if (leaves_ns - at_ns) * cir_bit_s / 8e9 > queue_bytes:
                continue
        tokens = min(cbs_bytes, tokens + (leaves_ns - filled_ns) * cir_bit_s / 8e9) - frame
        filled_ns = leaves_ns
        if draw.random() >= loss:
            came.append((place, leaves_ns + draw.random() * jitter_ns))
    first_ns = came[0][1] if came else 0.0
    return Burst(
        len(times),
        [place for place, _ in came],
        [round(at_ns - first_ns) if at_ns > first_ns else 0 for _, at_ns in came],
        [round(times[place]) for place, _ in came],
        frame,
    )
