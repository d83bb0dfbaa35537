"""Dataclasses to JSON and back: everything comes back, and nothing else gets in."""

import contextlib
import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.path_trace import WINDOW_NS, HopTrace, MtuReport, PathTrace
from linkgauge.engine.model.counters.samples import CoreTimes, Sample, SessionSample
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import DecodeError, PlanError
from linkgauge.engine.model.events import (
    Changed,
    Ended,
    Event,
    Opened,
    PathTraced,
    Sampled,
    SessionTotal,
    Started,
    Totals,
    Warned,
)
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.serialization import (
    decode,
    decode_tagged,
    encode,
    encode_tagged,
    make_printable,
    read_toml,
)

EVENTS: tuple[type[Any], ...] = get_args(Event)

_TEXT = st.text(st.characters(categories=("L", "N", "P")), max_size=20)
_COUNT = st.integers(0, 2**63 - 1)
_MAYBE = st.none() | _COUNT
_FLOW = st.sampled_from([Direction.OUT, Direction.IN])
_HOST = st.builds(HostInfo, _TEXT, _TEXT, _COUNT, _TEXT, _TEXT)
_SETTINGS = st.builds(
    Settings, st.sampled_from(Direction), st.integers(1, 128), st.none() | st.integers(2048, 2**30)
)
_EXPECTED = st.none() | st.builds(ExpectedRate, _COUNT, st.sampled_from(["documented", "computed"]), _TEXT)
_EXPECTATION = st.builds(Expectation, _EXPECTED, _EXPECTED, _EXPECTED)
_SESSION = st.builds(
    SessionSample, _FLOW, st.integers(1, 128), _COUNT, _MAYBE, _MAYBE, _MAYBE, _MAYBE, _MAYBE, _MAYBE, _MAYBE
)
_CORES = st.lists(st.builds(CoreTimes, _COUNT, _COUNT, _COUNT, _COUNT, _COUNT), max_size=3).map(tuple)
_SAMPLE = st.builds(
    Sample,
    st.sampled_from(End),
    _COUNT,
    _COUNT,
    _COUNT,
    st.lists(_SESSION, max_size=3).map(tuple),
    st.none() | _CORES,
    _MAYBE,
)
_TRUTH = st.none() | st.booleans()
_FACTS = st.builds(
    SocketInfo,
    st.sampled_from(End),
    _FLOW,
    st.integers(1, 128),
    st.none() | _TEXT,
    _MAYBE,
    _MAYBE,
    _TRUTH,
    _TRUTH,
    _TRUTH,
)
_SPAN = st.integers(1, 10**15)
_TOTAL = st.builds(SessionTotal, _FLOW, st.integers(1, 128), _COUNT, _SPAN, _MAYBE, _MAYBE, _MAYBE, _MAYBE, _MAYBE)
_HOP = st.builds(HopTrace, st.just(("192.0.2.1",)), st.just((4, 2)), st.just((3, 0)), st.just((9, None)))
_TRACE = st.builds(
    PathTrace,
    st.sampled_from(End),
    st.integers(0, 2),
    st.just(WINDOW_NS),
    st.lists(_HOP, max_size=3).map(tuple),
    st.just(False),
    st.just((4, 4)),
    st.just((MtuReport("2001:db8::1", 1_400),)),
)
_EVENT = st.one_of(
    st.builds(Started, _TEXT, _TEXT, _HOST, _HOST, st.builds(Plan, settings=_SETTINGS), _EXPECTATION),
    st.builds(Opened, _FACTS),
    st.builds(Changed, _COUNT, _SETTINGS, _EXPECTATION),
    st.builds(Sampled, _SAMPLE, _SETTINGS, st.booleans()),
    st.builds(Totals, st.sampled_from(End), _SPAN, st.lists(_TOTAL, max_size=3).map(tuple), _MAYBE),
    st.builds(PathTraced, _TRACE),
    st.builds(Warned, _TEXT),
    st.builds(Ended, st.builds(RunEnd, st.sampled_from(Reason), _TEXT)),
)


def _read(value: object) -> Event:
    return decode_tagged(EVENTS, value)


def _sampled(**sample: object) -> dict[str, Any]:
    """Return a good Sampled as JSON, with parts of its sample replaced."""
    good = Sample(End.FAR, 0, 10, 10, (SessionSample(Direction.OUT, 1, 5),), (CoreTimes(1, 2, 3, 4, 5),))
    value = encode_tagged(Sampled(good, Settings(), False))
    value["sample"].update(sample)
    return value


@given(_EVENT)
def test_every_event_comes_back_from_json_as_it_was(event: Event) -> None:
    """Over text, as the wire and the run log have it."""
    assert _read(json.loads(json.dumps(encode_tagged(event)))) == event


def test_the_events_drawn_are_all_there_are() -> None:
    """A new kind of event belongs into the round trip above."""
    assert {kind.__name__ for kind in EVENTS} == {
        "Started",
        "Opened",
        "Changed",
        "Sampled",
        "Totals",
        "PathTraced",
        "Warned",
        "Ended",
    }


def test_a_field_that_is_a_word_of_python_is_written_without_its_underscore() -> None:
    """Others read `in`, not `in_`."""
    expectation = Expectation(in_=ExpectedRate(1, "documented", "x"))
    assert encode(expectation) == {
        "out": None,
        "in": {"bit_s": 1, "basis": "documented", "source": "x", "transactions_s": None, "most_bit_s": None},
        "total": None,
    }
    assert decode(Expectation, encode(expectation)) == expectation
    with pytest.raises(DecodeError, match="in_: expected one of out, in, total, got 'an unknown key'"):
        decode(Expectation, {"in_": None})


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        ({"index": "1"}, r"Sampled.sample.index: expected a whole number of 64 bits, got '1'"),
        ({"index": 1.0}, "whole number"),
        ({"index": True}, "whole number"),
        ({"index": None}, "whole number"),
        ({"index": 2**63}, "whole number"),
        ({"index": -(2**63)}, "whole number"),
        ({"index": 10**4000}, "whole number"),
        ({"index": float("nan")}, "whole number"),
        ({"end": "middle"}, "Sampled.sample.end: expected one of near, far, got 'middle'"),
        ({"end": ["near"]}, "expected one of near, far"),
        ({"end": {}}, "expected one of near, far"),
        ({"sessions": {}}, "Sampled.sample.sessions: expected a list"),
        ({"sessions": [1]}, "Sampled.sample.sessions: expected an object"),
        ({"sessions": "[]"}, "expected a list"),
        ({"cores": [None]}, "Sampled.sample.cores: expected an object"),
        ({"cores": [{"user_ns": 1}]}, "with system_ns, softirq_ns, steal_ns, idle_ns"),
        ({"colour": 1}, r"Sampled.sample.colour: expected one of end, index.*an unknown key"),
    ],
)
def test_a_wrong_value_is_a_single_clear_error(spoilt: dict[str, object], says: str) -> None:
    """It says where, what was expected and what came."""
    with pytest.raises(DecodeError, match=says) as raised:
        _read(_sampled(**spoilt))
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("value", [None, 1, "Ended", [], [{"type": "Ended"}]])
def test_a_non_object_is_not_an_event(value: object) -> None:
    """Whatever JSON value it is."""
    with pytest.raises(DecodeError, match="expected an object"):
        _read(value)


@pytest.mark.parametrize("name", [None, "Sample", "Settings", 5, ["Ended"], {}, "ended"])
def test_an_event_of_an_unknown_kind_is_refused(name: object) -> None:
    """Also one that is a dataclass of ours, but no event."""
    with pytest.raises(DecodeError, match="type: expected one of Started, Opened, Changed"):
        _read({"type": name})


def test_a_missing_value_is_named() -> None:
    """All of it at once."""
    with pytest.raises(DecodeError, match=r"Ended\.end: expected an object with detail"):
        _read({"type": "Ended", "end": {"reason": "stopped"}})
    with pytest.raises(DecodeError, match="Changed: expected an object with elapsed_ns, settings, expectation"):
        _read({"type": "Changed"})


def test_a_value_that_a_plan_refuses_is_refused_in_the_plan_s_words() -> None:
    """The far end says the same as the command line."""
    value = encode_tagged(Changed(0, Settings(), Expectation()))
    value["settings"]["sessions"] = 129
    with pytest.raises(PlanError, match="sessions 129 is invalid"):
        _read(value)


def test_control_characters_of_a_text_are_taken_out() -> None:
    """A peer's host name cannot drive a terminal, turn its text round or break a line."""
    value = encode_tagged(Warned("red\x1b[31m\r\nbell\x07\x9b31m\u202eback\u2028\udc80"))
    event = _read(value)
    assert isinstance(event, Warned)
    assert event.text == "red�[31m��bell��31m�back��"
    assert event.text.isprintable()


@given(st.text())
def test_printable_text_is_printable_and_as_long_as_before(text: str) -> None:
    """And what was printable stays as it is."""
    assert make_printable(text).replace("\u00a0", " ").isprintable()
    assert make_printable("34\u00a0132 Mb/s") == "34\u00a0132 Mb/s"
    assert len(make_printable(text)) == len(text)
    assert make_printable(make_printable(text)) == make_printable(text)


def test_a_text_without_end_is_refused() -> None:
    """4096 characters are enough for anybody's warning."""
    assert _read({"type": "Warned", "text": "x" * 4096}) == Warned("x" * 4096)
    with pytest.raises(DecodeError, match="text of at most 4096 characters") as raised:
        _read({"type": "Warned", "text": "x" * 4097})
    assert len(str(raised.value)) < 200
    with pytest.raises(DecodeError, match="text of at most"):
        _read({"type": "Warned", "text": None})


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_only_true_and_false_are_truths(value: object) -> None:
    """A number is not a flag."""
    with pytest.raises(DecodeError, match=r"Sampled\.warmup: expected true or false"):
        _read({**_sampled(), "warmup": value})


@dataclass(frozen=True, slots=True)
class _Measure:
    """A dataclass with the plain kinds that no event has yet."""

    share: float
    basis: Literal["a", "b"] = "a"


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), float("-inf"), "1", True, None, pytest.param(10**400, id="huge")]
)
def test_only_finite_numbers_are_numbers(value: object) -> None:
    """JSON as Python reads it has NaN and Infinity, and whole numbers of any length."""
    with pytest.raises(DecodeError, match="share: expected a"):
        decode(_Measure, {"share": value})


def test_a_whole_number_is_a_number() -> None:
    """1 is 1.0 in JSON."""
    assert decode(_Measure, {"share": 1}) == _Measure(1.0)


@pytest.mark.parametrize("value", ["c", None, 1, ["a"]])
def test_only_the_words_of_a_choice_are_read(value: object) -> None:
    """Whatever else it is."""
    with pytest.raises(DecodeError, match="basis: expected one of a, b"):
        decode(_Measure, {"share": 1, "basis": value})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(_EVENT, st.data())
def test_no_value_in_any_place_raises_anything_else(event: Event, data: st.DataObject) -> None:
    """A peer or a file can put what it likes anywhere: the answer is an event or one of two errors."""
    value = encode_tagged(event)
    place: Any = value
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            place[key] = data.draw(_JSON)
            break
        place = place[key]
    with contextlib.suppress(DecodeError, PlanError):
        assert isinstance(_read(value), EVENTS)


def test_a_field_that_earlier_versions_do_not_know_is_written_only_where_it_has_a_value() -> None:
    """Their decoding refuses an unknown key, so that a plan without the new options goes on working there."""
    new = {"rate_bit_s", "bytes_limit", "client_port", "path_port"}
    assert not new & set(encode(Plan()))
    plan = Plan(rate_bit_s=10**9, bytes_limit=1 << 30, client_port=5000, path_port=61_000)
    assert new <= set(encode(plan))
    assert decode(Plan, encode(plan)) == plan


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" + "a." * 1_000_000 + "a = 1",
        "x = 1\n" + "a . " * 1_000_000 + "a = 1",
        "x = 1\n" + '"\\"".' * 1_000_000 + "a = 1",
        "x = 1\n" + "'a'." * 1_000_000 + "a = 1",
    ],
    ids=["bare", "spaced", "quoted", "literal"],
)
def test_a_toml_key_of_a_million_parts_is_refused_before_it_is_read(text: str) -> None:
    """The parser would take a day for it."""
    with pytest.raises(ValueError, match=r"A key has over 64 parts \(at line 2, column 1\)"):
        read_toml(text)
    for opening in "[", "[[", "x = {", "x = [1, {":
        with pytest.raises(ValueError, match=r"A key has over 64 parts \(at line 1, column"):
            read_toml(opening + text[6:])


def test_toml_with_as_many_dots_as_it_likes_outside_its_keys_is_read() -> None:
    """In values, however many, and in keys of a sensible number of parts."""
    networks = [f"192.0.2.{last}/32" for last in range(200)]
    text = f"a.b.'c.d' = {networks}\nb = '{'a.b' * 100}'\n" + ".".join("a" * 60) + " = 1.5"
    assert read_toml(text.replace("a.a.", "c.c."))["a"]["b"]["c.d"] == networks


@pytest.mark.parametrize(
    "number", ["9" * 5_000, "0x" + "f" * 5_000, "[{ b = 0o" + "7" * 9_000 + " }]", f"0b1{'0' * 14_000}"]
)
def test_a_toml_number_that_cannot_be_printed_is_refused(number: str) -> None:
    """TOML asks for 64 bits; tomllib has no limit for hexadecimal, octal and binary numbers."""
    with pytest.raises(ValueError, match="A number has over 4,200 digits"):
        read_toml(f"a = {number}")
    assert read_toml(f"a = {2**14_000 - 1}") == {"a": 2**14_000 - 1}
