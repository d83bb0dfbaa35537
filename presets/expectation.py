"""The expected rates of a run: its preset's rates for the direction, the sessions and the workload.

A documented rate comes before a computed one. The documents did not measure links with options (IPv6, VLAN tags,
another line rate), so their rates are computed. The IP version is the connections' own. If the wire model cannot
compute a link, its documented rate is scaled from IPv4 to IPv6. The rate of UDP is always computed, since every
document measured TCP.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from ..engine.model.directions import Direction
from ..engine.model.errors import PlanError
from ..engine.model.expected_rate import Expectation, ExpectedRate
from ..engine.model.plan import Settings
from ..engine.model.serialization import encode
from ..engine.model.workload import Workload, workload_named
from ..engine.results.rate_and_loss import change_percent
from .number_text import format_rate
from .preset import Flow, LinkSpec, Preset, Rate, as_bit_s, as_transactions_s
from .wire import DEFAULT_VARIANT, Variant, derive, derive_datagrams, ipv6_share, largest_datagram

WIRE_MODEL: Final = "the wire model"
_COMPUTABLE: Final[tuple[Flow, ...]] = ("simplex", "duplex")
_EXCHANGED: Final = ("rr", "crr")
# A document's stream is a request of 20 bytes and a response of 20 MB: a fetch with one round trip more.
_EQUIVALENT_WORKLOADS: Final = {"stream": ("stream", "fetch")}


def find_expectation(
    preset: Preset,
    settings: Settings,
    workload: Workload = Workload.STREAM,
    *,
    variant: Variant = DEFAULT_VARIANT,
    datagram_bytes: int | None = None,
    ip_version: int | None = None,
) -> Expectation:
    """Return the rates to expect under these settings.

    One direction has the simplex rate, both together have the duplex total. The directions of a duplex run have no
    rates of their own, since the documents do not divide the total. Several sessions have the peak rate if the
    document prints one. A workload without a rate in the preset has no expected rate. UDP has a computed rate in
    each direction.

    Args:
        preset: The kind of link.
        settings: The settings of the run.
        workload: The workload of the run.
        variant: Options that change the link.
        datagram_bytes: The UDP payload of a datagram, if it is better known than in the settings.
        ip_version: The connections' IP version, 4 or 6; None is the variant's.

    Raises:
        PlanError: The link cannot have the variant's options, or the connections have another IP version.
    """
    variant = variant.over_ip(ip_version)
    if workload.is_datagram:
        return _datagram_rates(preset.link, settings, variant, datagram_bytes or settings.datagram_bytes)
    if settings.direction is Direction.DUPLEX:
        return Expectation(total=_expected(preset, "duplex", settings.sessions, workload, variant))
    if settings.direction is Direction.OUT:
        return Expectation(out=_expected(preset, "out", settings.sessions, workload, variant))
    return Expectation(in_=_expected(preset, "in", settings.sessions, workload, variant))


def check_variant(preset: Preset | None, variant: Variant) -> None:
    """Raise PlanError if the link options leave a preset without an expected rate, or if there is no preset."""
    if preset is None:
        if variant != DEFAULT_VARIANT:
            raise PlanError(
                "link options", variant.description, "they need a preset; give --preset auto, or a preset's id"
            )
        return
    check_wire_model(preset, variant)
    if preset.link.duplex == "half" and variant.changes(preset.link):
        raise PlanError(
            "link options", variant.description, f"{preset.id} is half duplex, which the wire model does not cover"
        )


def check_wire_model(preset: Preset, variant: Variant) -> None:
    """Raise PlanError if the wire model cannot compute a preset's link with these options."""
    if variant.changes(preset.link) and derive(preset.link, "duplex", variant) is None:
        allowed = f"the expected rate of {preset.id} does not come from a line rate; leave them out"
        raise PlanError("link options", variant.description, allowed)


def _expected(preset: Preset, flow: Flow, sessions: int, workload: str, variant: Variant) -> ExpectedRate | None:
    is_documented = not replace(variant, ip=4).changes(preset.link)
    if workload in _EXCHANGED:
        if not is_documented or flow == "duplex":
            return None
        return _exchanged(preset, sessions, workload_named(workload), variant)
    computed = _computed(preset, flow, variant) if workload == "stream" else None
    changed = variant.changes(preset.link)
    flows: tuple[Flow, ...] = ("duplex",) if flow == "duplex" else ("simplex", flow)
    if is_documented and not (changed and computed):
        for documented_as in _EQUIVALENT_WORKLOADS.get(workload, (workload,)):
            rate = _documented(preset, flows, sessions, documented_as)
            bit_s = None if rate is None else preset.rate_bit_s(rate)
            if rate is not None and bit_s is not None:
                derived, source = derive(preset.link, flow, variant), preset.source_of(rate)
                if variant.ip != DEFAULT_VARIANT.ip:
                    bit_s = round(bit_s * ipv6_share(preset.link, flow))
                    source = f"{source}, scaled from IPv4 to IPv6"
                most_bit_s = None if derived is None else derived.bit_s
                return ExpectedRate(bit_s, "documented", source, most_bit_s=most_bit_s)
    return computed if changed or set(flows) & set(preset.computed) else None


def _exchanged(preset: Preset, sessions: int, workload: Workload, variant: Variant) -> ExpectedRate | None:
    """Return the documented transactions a second, with one end as the client.

    Over IPv6 they are the same: no line rate tells the cost of the larger header.
    """
    rate = _documented(preset, ("exchange",), sessions, workload)
    transactions_s = None if rate is None else as_transactions_s(preset.value_of(rate))
    if rate is None or transactions_s is None:
        return None
    _, response_bytes = workload.transaction_sizes
    bit_s = round(transactions_s * response_bytes * 8)
    source = preset.source_of(rate)
    if variant.ip != DEFAULT_VARIANT.ip:
        source = f"{source}, measured over IPv4"
    return ExpectedRate(bit_s, "documented", source, transactions_s)


def _documented(preset: Preset, flows: tuple[Flow, ...], sessions: int, workload: str) -> Rate | None:
    rates = [
        rate
        for rate in preset.rates
        if rate.flow in flows and rate.workload == workload and rate.sessions <= sessions
    ]
    return max(rates, key=lambda rate: rate.sessions, default=None)


def _computed(preset: Preset, flow: Flow, variant: Variant) -> ExpectedRate | None:
    """Return the model's rate; None for half duplex, since the model does not know the wait for the line."""
    derived = None if preset.link.duplex == "half" else derive(preset.link, flow, variant)
    if derived is None:
        return None
    words = variant.description
    source = f"{WIRE_MODEL} ({words})" if words else WIRE_MODEL
    return ExpectedRate(derived.bit_s, "computed", source, most_bit_s=derived.bit_s)


def _datagram_rates(
    link: LinkSpec, settings: Settings, variant: Variant, datagram_bytes: int | None
) -> Expectation:
    """Return the rates of UDP payload; none for datagrams that the link would carry in fragments.

    Each direction of a full duplex line has the whole rate. A half duplex line divides it. If the test sends less
    than that, its own rate is expected.
    """
    most = largest_datagram(link, variant)
    if most is None or (datagram_bytes is not None and datagram_bytes > most):
        return Expectation()
    if datagram_bytes is None and (slow := settings.slow_datagram_bytes) is not None:
        datagram_bytes = min(most, slow)
    one = _expected_datagrams(link, "simplex", variant, datagram_bytes)
    if one is None:
        return Expectation()
    flows = settings.direction.flows
    asked = None if settings.searches_rate else settings.rate_bit_s
    if len(flows) == 1:
        one = _at_most(one, asked)
        return Expectation(one, None) if settings.direction is Direction.OUT else Expectation(None, one)
    total = _expected_datagrams(link, "duplex", variant, datagram_bytes)
    each = replace(one, bit_s=one.bit_s // 2) if link.duplex == "half" else one
    whole = None if asked is None else asked * len(flows)
    return Expectation(_at_most(each, asked), _at_most(each, asked), total and _at_most(total, whole))


def limit_expectation(expectation: Expectation, rate_bit_s: int | None) -> Expectation:
    """Return the expected rates of a test that sends at most this rate in each direction; None is no limit.

    A watch sends less than the link carries, in order not to load it, and judges whether that arrives. Transactions
    have no such limit.
    """
    whole = None if rate_bit_s is None else 2 * rate_bit_s
    out, in_, total = expectation.out, expectation.in_, expectation.total
    return Expectation(
        out and _at_most(out, rate_bit_s), in_ and _at_most(in_, rate_bit_s), total and _at_most(total, whole)
    )


def _at_most(expected: ExpectedRate, asked_bit_s: int | None) -> ExpectedRate:
    """Return an expected rate, or the rate that the test sends if that is lower."""
    if asked_bit_s is None or asked_bit_s >= expected.bit_s:
        return expected
    source = f"the rate that the test sends; {expected.source} allows {format_rate(expected.bit_s)}"
    return replace(expected, bit_s=asked_bit_s, source=source, most_bit_s=expected.most_bit_s or expected.bit_s)


def _expected_datagrams(
    link: LinkSpec, flow: Flow, variant: Variant, datagram_bytes: int | None = None
) -> ExpectedRate | None:
    derived = derive_datagrams(link, flow, variant, datagram_bytes)
    if derived is None:
        return None
    relevant = replace(variant, timestamps=None, tcp_option_bytes=0)
    words = relevant.description if relevant.changes(link) else ""
    source = f"{WIRE_MODEL} ({words})" if words else WIRE_MODEL
    return ExpectedRate(derived.bit_s, "computed", source, most_bit_s=derived.bit_s)


def rates_to_show(
    preset: Preset, variant: Variant
) -> tuple[tuple[Rate, ...], tuple[tuple[Flow, ExpectedRate], ...]]:
    """Return a preset's documented rates, and the computed ones with their flows.

    With options all are computed, since the document did not measure such a link.
    """
    rates, flows = ((), _COMPUTABLE) if variant.changes(preset.link) else (preset.rates, preset.computed)
    computed: dict[Flow, ExpectedRate | None] = {flow: _computed(preset, flow, variant) for flow in flows}
    return rates, tuple((flow, expected) for flow, expected in computed.items() if expected is not None)


def datagram_rates(link: LinkSpec, variant: Variant = DEFAULT_VARIANT) -> dict[Flow, ExpectedRate]:
    """Return the expected rates of UDP payload in the largest datagrams; empty without a line."""
    rates: dict[Flow, ExpectedRate | None] = {
        flow: _expected_datagrams(link, flow, variant) for flow in _COMPUTABLE
    }
    return {flow: expected for flow, expected in rates.items() if expected is not None}


def model_deviation_percent(preset: Preset, rate: Rate) -> float | None:
    """Return the percent by which a documented rate exceeds the computed one, if both exist."""
    bit_s, derived = preset.rate_bit_s(rate), derive(preset.link, rate.flow)
    return None if bit_s is None or derived is None else change_percent(derived.bit_s, bit_s)


def preset_json(preset: Preset, variant: Variant = DEFAULT_VARIANT) -> dict[str, Any]:
    """Return a preset as JSON values, for programs. The keys must not change."""
    rates, computed = rates_to_show(preset, variant)
    return {
        "id": preset.id,
        "name": preset.name,
        "name_ja": preset.name_ja,
        "family": preset.family,
        "source": {"id": preset.source.id, "title": preset.source.title},
        "link": encode(preset.link),
        "options": variant.description if variant.changes(preset.link) else None,
        "suggested_window_bytes": preset.suggested_window_bytes,
        "expectations": [
            *(encode(_documented_figures(preset, rate)) for rate in rates),
            *(encode(_computed_figures(expected, flow)) for flow, expected in computed),
        ],
        "udp": _datagrams_json(preset.link, variant),
        "marks": [
            {**encode(number), "reason": mark.reason}
            for mark in preset.marks
            if (number := preset.value_of(mark)) is not None
        ],
        "notes": list(preset.notes),
        "facts": [encode(number) for number in preset.document_values],
    }


@dataclass(frozen=True, slots=True)
class _Amounts:
    """A number of a document in the units of a rate, of which it has one."""

    row: str
    bit_s: int | None
    transactions_s: float | None


@dataclass(frozen=True, slots=True)
class _RateFigures:
    """An expected rate for programs: a field for each key of an object."""

    workload: str
    flow: Flow
    sessions_from: int
    bit_s: int | None
    transactions_s: float | None
    basis: str
    source: str
    computed_bit_s: int | None
    why: str | None = None
    cpu_percent: float | None = None
    cpu_msec_per_mib: float | None = None
    cpu_msec_per_transaction: float | None = None
    baseline: _Amounts | None = None


def _documented_figures(preset: Preset, rate: Rate) -> _RateFigures:
    derived, number = derive(preset.link, rate.flow), preset.value_of(rate)
    transactions_s, cost = as_transactions_s(number), _value(preset, rate, rate.cost_column)
    base = None if rate.baseline_row is None else preset.find_value(rate.table, rate.baseline_row, rate.column)
    return _RateFigures(
        rate.workload,
        rate.flow,
        rate.sessions,
        as_bit_s(number),
        transactions_s,
        "documented",
        preset.source_of(rate),
        derived.bit_s if derived else None,
        rate.why,
        _value(preset, rate, rate.cpu_column),
        cost if transactions_s is None else None,
        None if transactions_s is None else cost,
        None if base is None else _Amounts(base.row, as_bit_s(base), as_transactions_s(base)),
    )


def _computed_figures(expected: ExpectedRate, flow: Flow) -> _RateFigures:
    bit_s = expected.bit_s
    return _RateFigures("stream", flow, 1, bit_s, None, "computed", expected.source, computed_bit_s=bit_s)


def _value(preset: Preset, rate: Rate, column: str | None) -> float | None:
    number = preset.find_value(rate.table, rate.row, column)
    return None if number is None else number.value


def _datagrams_json(link: LinkSpec, variant: Variant) -> dict[str, Any] | None:
    """Return the expected rates of UDP payload in the largest datagrams; None without a line."""
    rates = datagram_rates(link, variant)
    if not rates:
        return None
    simplex = rates["simplex"]
    return {
        "datagram_bytes": largest_datagram(link, variant),
        **{f"{flow}_bit_s": expected.bit_s for flow, expected in rates.items()},
        "basis": simplex.basis,
        "source": simplex.source,
    }
