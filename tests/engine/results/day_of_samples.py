"""Samples of one session at both ends for a day, with the noise of a real link, in no time."""

import json
import random
from collections.abc import Iterator

from linkgauge.engine.model.counters.samples import (
    CoreTimes,
    LatencyCounts,
    NicCounts,
    ProbeSample,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.engine.model.serialization import encode_tagged

_TICK_NS = SECOND_NS // 4
_JIFFY_NS = 10_000_000
SAMPLES_A_DAY = 2 * 4 * 86_400
_SETTINGS = Settings()


def samples(count: int, *, cores: int = 4, has_probe: bool = False) -> Iterator[Event]:
    """Yield samples of the near and the far end in turn, of a session at about 930 Mb/s."""
    noise = random.Random(1)  # noqa: S311 (no secret)
    for index in range(count // 2):
        for end in (End.NEAR, End.FAR):
            yield Sampled(_sample(noise, end, index, cores, has_probe=has_probe), _SETTINGS, False)


def sample_texts(count: int, *, has_probe: bool = False) -> list[str]:
    """Return samples as the run log writes them."""
    return [
        json.dumps(encode_tagged(event), separators=(",", ":")) for event in samples(count, has_probe=has_probe)
    ]


def _sample(noise: random.Random, end: End, index: int, cores: int, *, has_probe: bool) -> Sample:
    number = noise.randrange
    span_ns = _TICK_NS + number(-2_000_000, 2_000_000)
    bytes_ = number(28_000_000, 29_500_000)
    cpu_ns = number(60_000_000, 90_000_000)
    near = end is End.NEAR
    nic = (bytes_ // 80, bytes_ * 26 // 25) if near else (bytes_ * 26 // 25, bytes_ // 80)
    return Sample(
        end,
        index,
        (index + 1) * _TICK_NS + number(2_000_000),
        span_ns,
        (_session(noise, bytes_) if near else _receiving_session(noise, bytes_),),
        tuple(
            CoreTimes(
                number(6) * _JIFFY_NS, number(20) * _JIFFY_NS, number(4) * _JIFFY_NS, 0, number(20) * _JIFFY_NS
            )
            for _ in range(cores)
        ),
        cpu_ns,
        (),
        cpu_ns - number(1_000_000, 3_000_000),
        NicCounts(nic[0] + number(90_000), nic[1] + number(90_000), 0, 0, 0),
        _probe(noise, span_ns) if near and has_probe else None,
    )


def _session(noise: random.Random, bytes_: int) -> SessionSample:
    number = noise.randrange
    return SessionSample(
        Direction.OUT,
        1,
        bytes_,
        retransmits=number(3),
        rtt_us=number(800, 1600),
        cwnd_bytes=1448 * number(400, 700),
        mss_bytes=1448,
        busy_us=number(200_000, 252_000, 4000),
        rwnd_limited_us=number(0, 20_000, 4000),
        sndbuf_limited_us=0,
        bytes_retrans=1448 * number(3),
        min_rtt_us=210,
        pacing_bit_s=number(10**9, 2 * 10**9),
        delivery_bit_s=number(9 * 10**8, 10**9),
        peer_window_bytes=1024 * number(3070, 3073),
    )


def _receiving_session(noise: random.Random, bytes_: int) -> SessionSample:
    return SessionSample(
        Direction.OUT,
        1,
        bytes_,
        out_of_order=noise.randrange(2),
        rcv_space_bytes=1448 * noise.randrange(4000, 4010),
    )


def _probe(noise: random.Random, span_ns: int) -> ProbeSample:
    buckets = tuple(sorted(noise.sample(range(250, 330), noise.randrange(8, 14))))
    counts = tuple(noise.randrange(1, 7) for _ in buckets)
    return ProbeSample(LatencyCounts(Direction.OUT, buckets, counts), span_ns, noise.randrange(100, 300))
