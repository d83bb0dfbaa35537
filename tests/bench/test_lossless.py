"""The search for the rate at which a tool loses next to nothing, with tools that lose what they say they do."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from lossless import MOST_LOST, SEARCH_ROUNDS, find_lossless, measure_lossless
from measurements import Round
from outputs import Datagrams
from rounds import RoundError, measure_round
from tools import BITS, ClientCommand, Entry, Tool

UNLIMITED = 8e9
SERVER = (
    "import socket, sys, time\n"
    "with socket.create_server(('127.0.0.1', int(sys.argv[1]))) as listener:\n"
    "    time.sleep(60)\n"
)
# Sends as much as it may, of which so much arrives.
CLIENT = (
    "import json, sys\nsent, carried = map(float, sys.argv[1:])\nprint(json.dumps([min(sent, carried), sent]))\n"
)


def read(output: str) -> Datagrams:
    """Return the counts that the client prints."""
    received, sent = json.loads(output)
    return Datagrams(int(sent), int(received))


def entry(carried_bit_s: float) -> Entry:
    """Return a tool whose datagrams arrive at up to a rate."""

    def client_at(bit_s: int | None) -> ClientCommand:
        words = [sys.executable, "-ISc", CLIENT, str(bit_s or UNLIMITED), str(carried_bit_s)]
        return lambda _port, _seconds: words

    tool = Tool("a tool", sys.executable, (), lambda port: [sys.executable, "-ISc", SERVER, str(port)])
    parse: Callable[[str], float] = lambda output: json.loads(output)[0]  # noqa: E731
    return Entry("a tool", tool, client_at(None), parse, BITS, parse_datagrams=read, client_at=client_at)


def test_the_rate_found_is_the_highest_that_arrives_and_rounds_are_measured_at_it(tmp_path: Path) -> None:
    """To within 7 % of it and never above, after as many rounds as are announced."""
    carried = 1e9
    seen: list[Round] = []

    def measure(at: Entry) -> Round:
        seen.append(measure_round(at, 0, tmp_path))
        return seen[-1]

    found = find_lossless(entry(carried), measure)
    assert found.limit_bit_s is not None
    assert len(seen) == SEARCH_ROUNDS
    assert carried * 0.93 < found.limit_bit_s <= carried / (1 - MOST_LOST)
    measured = measure_lossless(found, measure)
    assert (measured.limit_bit_s, measured.rate) == (found.limit_bit_s, found.limit_bit_s)
    assert measured.lost_share == 0.0


@pytest.mark.every
@pytest.mark.parametrize("carried", [UNLIMITED, UNLIMITED * (1 - MOST_LOST / 2)])
def test_a_tool_that_loses_next_to_nothing_is_not_limited(carried: float, tmp_path: Path) -> None:
    """It is measured once, as it is."""
    tool = entry(carried)
    measure = partial(measure_round, seconds=0, folder=tmp_path)
    assert find_lossless(tool, measure) is tool
    assert measure_lossless(tool, measure).limit_bit_s is None


@pytest.mark.every
def test_a_round_that_loses_more_is_measured_at_the_next_lower_rates(tmp_path: Path) -> None:
    """Down to the first that arrives; who loses at every rate fails in words."""
    measure = partial(measure_round, seconds=0, folder=tmp_path)
    measured = measure_lossless(entry(0.75 * UNLIMITED), measure)
    assert measured.limit_bit_s == pytest.approx(0.729 * UNLIMITED)

    def lossy(at: Entry) -> Round:
        return Round(1e9, limit_bit_s=at.limit_bit_s, lost_share=0.02)

    with pytest.raises(RoundError, match="loses more than 1% of its datagrams, also at"):
        measure_lossless(entry(UNLIMITED), lossy)
