"""Blocks of events: every text comes back, samples become small, and damage is an error."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.results.run_log.event_blocks import pack_events, unpack_events

from ..day_of_samples import sample_texts

_NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.integers(0, 300), st.floats(allow_nan=False))
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, st.text(), st.lists(st.integers(0, 2**63 - 1))),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=12,
)


@given(st.lists(_VALUES, max_size=8), st.integers(1, 5))
def test_every_json_text_comes_back(values: list[object], times: int) -> None:
    """In its order, whatever numbers and digits in strings it has."""
    texts = [json.dumps({"type": value}, separators=(",", ":")) for value in values] * times
    assert unpack_events(pack_events(texts)) == texts


@pytest.mark.parametrize("count", [2, 24, 26])
def test_a_block_of_few_events_is_as_good_as_one_of_many(count: int) -> None:
    """Few are stored as they are; a text that would not come back is refused in both."""
    texts = sample_texts(count)
    assert unpack_events(pack_events(texts)) == texts
    with pytest.raises(ValueError, match="control"):
        pack_events([*texts[1:], '{"a":\n1}' if count <= 24 else '{"a":\0}'])
    with pytest.raises(ValueError, match="block"):
        unpack_events(pack_events(texts)[:-5])


@pytest.mark.parametrize("has_probe", [False, True])
def test_samples_take_a_twentieth_of_their_text(has_probe: bool) -> None:
    """Even with a latency histogram, whose lists differ in length."""
    texts = sample_texts(512, has_probe=has_probe)
    block = pack_events(texts)
    assert unpack_events(block) == texts
    assert len(block) < sum(map(len, texts)) / 20


@pytest.mark.parametrize(
    "change", ["cut off", "unknown format", "other format", "no header", "short column", "other template"]
)
def test_a_damaged_block_is_an_error(change: str) -> None:
    """Never another exception than ValueError, and never a wrong text."""
    block = pack_events(sample_texts(64))
    data = zlib.decompress(block[1:])
    damaged = {
        "cut off": block[:-5],
        "unknown format": b"\x03" + block[1:],
        "other format": b"\x02" + block[1:],
        "no header": b"\x01" + zlib.compress(b"\xff\xff\xff\xff"),
        "short column": b"\x01" + zlib.compress(data[:-30]),
        "other template": b"\x01" + zlib.compress(data.replace(b"\\u0000", b"\\u0001", 1)),
    }[change]
    with pytest.raises(ValueError, match="block"):
        unpack_events(damaged)


@given(st.binary(max_size=60), st.integers(0, 40))
def test_bytes_of_any_kind_are_texts_or_a_value_error(noise: bytes, at: int) -> None:
    """A file may have anything in it."""
    data = zlib.decompress(pack_events(sample_texts(64))[1:])
    for block in (
        noise,
        b"\x01" + noise,
        b"\x02" + noise,
        b"\x02" + zlib.compress(noise),
        b"\x01" + zlib.compress(data[:at] + noise + data[at + len(noise) :]),
    ):
        try:
            texts = unpack_events(block)
        except ValueError:
            continue
        assert all(isinstance(text, str) for text in texts)
