"""Events become lines of JSON and come back; damaged ones are reported and left out."""

import contextlib
import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import DecodeError
from linkgauge.watch.event_codec import UnreadEntry, event_line, event_text, keep_until_s, parse_event, read_events
from linkgauge.watch.events import CheckResult, CheckVerdict, Metric, WatchEvent

from ..json_schemas import check
from .event_examples import EVERY_KIND, NOON_S, changed, ended, probed


def test_every_event_is_one_line_that_fits_the_schemas_and_comes_back_unchanged() -> None:
    """The schema of a watch, and the schema of any stream."""
    assert {type(event) for event in EVERY_KIND} == set(get_args(WatchEvent))
    for event in EVERY_KIND:
        text = event_text(event)
        assert "\n" not in text
        assert parse_event(json.loads(text)) == event
        for schema in ("watch.schema.json", "stream.schema.json"):
            check(schema, json.loads(text))


def test_figures_are_an_object_by_metric() -> None:
    """That is easy to read for the user and for jq."""
    line = event_line(ended(rate=9.4e8))
    assert line["type"] == "check_end"
    assert line["result"]["figures"] == {"goodput_bit_s": 9.4e8, "retransmits": 2.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "tea_break"}, "type: expected one of watch_start"),
        ({"type": ["probe"]}, "type: expected one of"),
        ({"more": 1}, r"\.more: expected one of at_s"),
        ({"at_s": "noon"}, "at_s: expected a number"),
        ({"at_s": -1}, "at_s: expected seconds since 1970"),
        ({"at_s": 1e300}, "at_s: expected seconds since 1970"),
        ({"attempt": 10**9}, "attempt: expected 0 to 1000"),
        ({"result": None}, "result: expected an object"),
        ({"result": {"verdict": "fine"}}, "verdict: expected one of good, below, failed"),
        ({"result": {"verdict": "good", "figures": [1]}}, "figures: expected an object"),
        ({"result": {"verdict": "good", "figures": {"taste": 1}}}, "expected one of goodput_bit_s"),
        ({"result": {"verdict": "good", "figures": {"loss": "much"}}}, "expected a number"),
    ],
)
def test_a_damaged_object_is_refused_with_the_place_of_the_error(change: dict[str, Any], message: str) -> None:
    """One part is wrong, the rest is right."""
    with pytest.raises(DecodeError, match=message):
        parse_event({**event_line(ended()), **change})


def test_a_missing_key_is_named() -> None:
    """Each key without a default."""
    line = event_line(probed())
    del line["peer"]
    with pytest.raises(DecodeError, match="an object with peer"):
        parse_event(line)


def test_a_bad_entry_is_left_out_with_its_number_and_the_others_are_read() -> None:
    """An entry of a newer linkgauge, too."""
    texts = [
        event_text(probed()),
        "{",
        '{"type":"tea_break"}',
        '{"type":"probe","type":"probe"}',
        event_text(changed()),
    ]
    first, *bad, last = read_events(enumerate(texts, 7))
    assert (first, last) == (probed(), changed())
    assert [entry.number for entry in bad if isinstance(entry, UnreadEntry)] == [8, 9, 10]
    assert "entry 9 of the journal is left out: type: expected one of" in str(bad[1])


def test_a_figure_that_is_not_finite_is_not_written() -> None:
    """It could not be read again."""
    with pytest.raises(ValueError, match="JSON"):
        event_text(ended(rate=float("nan")))


KEYS = st.sampled_from(["type", "at_s", "peer", "result", "figures", "verdict", "cycle_s", "before"])
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(ANY_VALUE, st.sampled_from(EVERY_KIND), KEYS)
def test_any_value_in_any_place_is_an_event_or_a_decode_error(value: Any, event: WatchEvent, key: str) -> None:
    """Nothing else escapes."""
    for candidate in (value, {**event_line(event), key: value}):
        with contextlib.suppress(DecodeError):
            parse_event(candidate)


@given(
    st.builds(
        CheckResult,
        st.sampled_from(CheckVerdict),
        st.integers(0, 2**62),
        st.dictionaries(st.sampled_from(Metric), st.floats(allow_nan=False, allow_infinity=False)).map(
            lambda figures: tuple(figures.items())
        ),
        st.none() | st.floats(0, 1e6),
    )
)
def test_any_result_comes_back_unchanged(result: CheckResult) -> None:
    """To the last digit."""
    event = replace(ended(), result=result)
    assert parse_event(json.loads(event_text(event))) == event


def test_changes_are_kept_for_ever_results_for_a_year_and_probes_for_a_month() -> None:
    """The budget of a month needs its probes; a comparison with last year needs the tests."""
    assert keep_until_s(changed()) is None
    assert keep_until_s(ended()) == NOON_S + 400 * 86_400
    assert keep_until_s(probed()) == NOON_S + 32 * 86_400
    assert keep_until_s(probed(), 60.0) == NOON_S + 2 * 86_400
    assert keep_until_s(probed(), 1_800.0) == NOON_S + 1_000 * 1_800
    assert keep_until_s(probed(), 3_600.0) == NOON_S + 32 * 86_400
