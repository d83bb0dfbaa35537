"""The result of an interval: the figures of its rows of CSV and of its JSON line. Pure.

Time and bytes are the receiver's, TCP's values the sender's. If the receiver is an iperf3, which reports nothing
before the end, they are the sender's too, and `counted_by` says so.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from ..model.counters.latency_histogram import summarize_latency
from ..model.counters.samples import SessionSample, latency_counts
from ..model.directions import Direction, End
from ..model.events import Sampled
from ..model.expected_rate import ExpectedRate
from ..model.plan import MIB
from .figure_codec import figure, mbit, part, round_figure, seconds, us
from .measured_result import mib, percent_of_expected
from .meter import Interval, Meter
from .rate_and_loss import host_percent, hottest_core_percent, msec_each
from .responsiveness.interval_figures import FIGURES as RESPONSIVENESS_FIGURES
from .responsiveness.interval_figures import interval_figures
from .summary import Measurement
from .sums import other_tests_sum
from .sums.sender_sum import tcp_gauges
from .udp.interval_figures import FIGURES, Figures, flow_figures, session_figures

OTHER_PREFIX: Final = "other_"


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """The figures of a session: the shape has a field for each member, and hidden ones for the rows."""

    session: int
    bytes: int | None = None
    mbit_s: float | None = None
    transactions_s: float | None = None
    latency_p50_us: float | None = None
    latency_p99_us: float | None = None
    retransmits: int | None = None
    rtt_us: int | None = None
    cwnd_bytes: int | None = None
    udp: Figures | None = None
    mib_s: float | None = figure(hidden=True)


@dataclass(frozen=True, slots=True)
class FlowFigures:
    """The figures of all sessions of a direction, and of each. The shape has a field for each member.

    The hidden fields are for the rows alone. The settings are those of this direction's samples.
    """

    bytes: int | None = None
    mbit_s: float | None = None
    percent_of_expected: float | None = None
    transactions_s: float | None = None
    latency_p50_us: float | None = None
    latency_p99_us: float | None = None
    retransmits: int | None = None
    rtt_us: int | None = None
    cwnd_bytes: int | None = None
    sessions: tuple[SessionFigures, ...] = ()
    elapsed_s: float | None = None
    interval_s: float | None = None
    udp: Figures | None = None
    counted_by: str | None = None
    mib_s: float | None = figure(hidden=True)
    expected_mbit_s: float | None = figure(hidden=True)
    sampled: Sampled = figure(hidden=True)


@dataclass(frozen=True, slots=True)
class EndFigures:
    """CPU of an end, in all and for each MiB of payload."""

    cpu_percent: float | None = None
    hottest_core_percent: float | None = None
    cpu_msec_per_mib: float | None = None


@dataclass(frozen=True, slots=True)
class IntervalResult:
    """The figures of an interval. `latencies` are a probe's; only responsiveness tests have a member of them."""

    elapsed_s: float | None
    warmup: bool
    sessions: int
    window_bytes: int | None
    responsiveness: dict[str, Any] | None
    other_tests: Figures | None
    out: FlowFigures | None
    in_: FlowFigures | None
    total_mbit_s: float | None
    near: EndFigures = part(EndFigures)
    far: EndFigures = part(EndFigures)
    latencies: Figures = part(dict, hidden=True)

    @classmethod
    def of(cls, interval: Interval, meter: Meter) -> "IntervalResult | None":
        """Return the figures of an interval; None if neither end has a sample of a direction that ran."""
        flows = {flow: _flow(interval, meter, flow) for flow in interval.flows}
        if not flows:
            return None
        (first, *_), rates = flows.values(), [figures.mbit_s for figures in flows.values()]
        ends_s = [figures.elapsed_s for figures in flows.values() if figures.elapsed_s is not None]
        known = [rate for rate in rates if rate is not None]
        latencies = _rounded(interval_figures(interval.near, interval.far))
        return cls(
            max(ends_s, default=None),
            first.sampled.warmup,
            first.sampled.settings.sessions,
            first.sampled.settings.window_bytes,
            _responsiveness(interval, latencies, meter),
            _other_tests(interval.far),
            flows.get(Direction.OUT),
            flows.get(Direction.IN),
            None if len(known) < len(rates) else round_figure(sum(known)),
            _end(interval, End.NEAR),
            _end(interval, End.FAR),
            latencies,
        )

    @property
    def flows(self) -> Iterator[tuple[Direction, FlowFigures]]:
        """The directions that ran, with their figures."""
        for direction, figures in ((Direction.OUT, self.out), (Direction.IN, self.in_)):
            if figures is not None:
                yield direction, figures


def _flow(interval: Interval, meter: Meter, flow: Direction) -> FlowFigures:
    receiver, sender = interval.receiver_sample(flow), interval.sender_sample(flow)
    sampled = receiver or sender
    assert sampled is not None  # noqa: S101 (the direction ran)
    received, sent = _sessions(receiver, flow), _sessions(sender, flow)
    datagrams = session_figures(receiver, sender, flow)
    numbers = sorted({**received, **sent, **datagrams})
    expected = meter.expectation_for(sampled.settings)[flow]
    whole = None if receiver is None else sum(part.bytes for part in received.values())
    times = {} if receiver is None else _times(receiver)
    return FlowFigures(
        **_rates(whole, receiver),
        percent_of_expected=_percent(whole, receiver, expected),
        expected_mbit_s=mbit(expected and expected.bit_s),
        **_transactions_of_all(receiver, flow) | _probe(interval.near),
        **_tcp(sent.values()),
        sessions=tuple(
            SessionFigures(
                number,
                **_rates(received[number].bytes if number in received else None, receiver),
                **_transactions_of(received.get(number), receiver),
                **_tcp([sent[number]] if number in sent else []),
                udp=_datagrams(datagrams.get(number, {})),
            )
            for number in numbers
        ),
        **times,
        udp=_datagrams(flow_figures(receiver, sender, flow)),
        sampled=sampled,
    )


def _sessions(sampled: Sampled | None, flow: Direction) -> dict[int, SessionSample]:
    sessions: dict[int, SessionSample] = {}
    for session in sampled.sample.sessions if sampled else ():
        if session.direction is flow:
            before = sessions.get(session.session)
            # If a peer reports a session twice, the rows must still add up to the summary.
            total = session if before is None else replace(session, bytes=session.bytes + before.bytes)
            sessions[session.session] = total
    return sessions


def _times(receiver: Sampled) -> dict[str, Any]:
    sample = receiver.sample
    return {
        "elapsed_s": seconds(sample.elapsed_ns),
        "interval_s": seconds(sample.interval_ns),
        "counted_by": "sender" if sample.is_from_sender else "receiver",
    }


def _measured(count: int | None, receiver: Sampled | None) -> Measurement | None:
    return None if count is None or receiver is None else Measurement(count, receiver.sample.interval_ns)


def _rates(count: int | None, receiver: Sampled | None) -> dict[str, Any]:
    measured = _measured(count, receiver)
    rates = {} if measured is None else {"mbit_s": mbit(measured.bit_s), "mib_s": mib(measured.bit_s)}
    return {"bytes": count, **rates}


def _percent(count: int | None, receiver: Sampled | None, expected: ExpectedRate | None) -> float | None:
    measured = _measured(count, receiver)
    return None if measured is None else percent_of_expected(measured, expected)


def _transactions_of_all(receiver: Sampled | None, flow: Direction) -> dict[str, Any]:
    """Return the transactions of all sessions, with the percentiles of all together."""
    if receiver is None or all(counts.direction is not flow for counts in receiver.sample.latency):
        return {}
    counts = latency_counts(receiver.sample.latency, flow)
    latency = summarize_latency(counts)
    percentiles = (None, None) if latency is None else (latency.p50_ns, latency.p99_ns)
    return _transactions(sum(counts.values()), receiver, *percentiles)


def _transactions_of(session: SessionSample | None, receiver: Sampled | None) -> dict[str, Any]:
    if session is None or receiver is None or session.transactions is None:
        return {}
    return _transactions(session.transactions, receiver, session.latency_p50_ns, session.latency_p99_ns)


def _transactions(count: int, receiver: Sampled, p50_ns: int | None, p99_ns: int | None) -> dict[str, Any]:
    measured = Measurement(0, receiver.sample.interval_ns, count)
    return {"transactions_s": round_figure(measured.transactions_s), **_percentiles(p50_ns, p99_ns)}


def _percentiles(p50_ns: int | None, p99_ns: int | None) -> dict[str, Any]:
    return {
        "latency_p50_us": us(p50_ns),
        "latency_p99_us": us(p99_ns),
    }


def _probe(near: Sampled | None) -> dict[str, Any]:
    """Return the probe's latency under load, which the near end measures for any direction."""
    if near is None or near.sample.probe is None:
        return {}
    latency = summarize_latency(near.sample.probe.latency.by_bucket)
    return {} if latency is None else _percentiles(latency.p50_ns, latency.p99_ns)


def _tcp(sessions: Iterable[SessionSample]) -> dict[str, Any]:
    return dict(zip(("rtt_us", "retransmits", "cwnd_bytes"), tcp_gauges(list(sessions)), strict=True))


def _datagrams(figures: Figures) -> Figures | None:
    """Return the figures of datagrams; None for TCP."""
    return {name: _rounded(figures).get(name) for name in FIGURES} if figures else None


def _rounded(figures: Figures) -> Figures:
    return {name: round_figure(value) if isinstance(value, float) else value for name, value in figures.items()}


def _responsiveness(interval: Interval, latencies: Figures, meter: Meter) -> dict[str, Any] | None:
    """Return the load and the latency of an interval; None if the run is not a responsiveness test."""
    sampled = interval.near or interval.far
    if sampled is None or meter.started is None or meter.started.plan.responsiveness is None:
        return None
    load = sampled.settings.direction.value
    return {"load": load, **{name: latencies.get(name) for name in RESPONSIVENESS_FIGURES}}


def _other_tests(far: Sampled | None) -> Figures | None:
    """Return the other tests of the endpoint; None if it does not report them."""
    figures = _rounded(other_tests_sum.interval_figures(far))
    return {name.removeprefix(OTHER_PREFIX): value for name, value in figures.items()} or None


def _end(interval: Interval, end: End) -> EndFigures:
    """Return an end's CPU, and the time of its processes per MiB of payload received at both ends."""
    sampled = interval.end_sample(end)
    sample = None if sampled is None else sampled.sample
    cores = () if sample is None else sample.cores or ()
    counts = [interval.received_bytes(flow) for flow in interval.flows]
    carried = None if None in counts else sum(filter(None, counts)) / MIB
    return EndFigures(
        round_figure(host_percent(cores)),
        round_figure(hottest_core_percent(cores)),
        round_figure(msec_each(None if sample is None else sample.process_cpu_ns, carried)),
    )
