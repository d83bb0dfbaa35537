"""A measured policer or shaper as it is printed: sentences, numbers, and the command whose rate fits."""

from dataclasses import replace

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.shape.burst_reading import BurstReading
from linkgauge.engine.results.shape.shape_result import DirectionShape, ShapeResult, judge_direction
from linkgauge.tui.cli.render.shape_report import fitting_command, shape_lines, shape_numbers, shape_sentence

POLICED = BurstReading(100e6, 50e3, 60_000, True, False, 0.0, 0.0, 1e9)
SHAPED = BurstReading(100e6, 50e3, 60_000, True, True, 125e3, 10e6, 1e9)


def shape(
    reading: BurstReading, direction: Direction = Direction.OUT, *, is_settled: bool = True
) -> DirectionShape:
    """Return the result of ten such bursts."""
    return judge_direction(
        direction, [reading] * 10, datagram_bytes=1_472, frame_bytes=1_514, is_settled=is_settled
    )


def plain(text: str) -> str:
    """Return a text with plain spaces in its numbers."""
    return text.replace("\N{NO-BREAK SPACE}", " ")


def test_each_kind_has_its_sentence() -> None:
    """Without a limit it says up to which rate there is none."""
    assert shape_sentence(shape(POLICED)) == "a policer: it drops what is faster, without delay"
    assert shape_sentence(shape(SHAPED)) == (
        "a shaper: it delays what is faster, and drops what does not fit its queue"
    )
    assert shape_sentence(shape(replace(SHAPED, has_loss=False))) == "a shaper: it delays what is faster"
    assert "without a burst allowance" in shape_sentence(shape(replace(SHAPED, cbs_bytes=1_514.0)))
    assert plain(shape_sentence(shape(replace(POLICED, cir_bit_s=None)))) == (
        "no policer or shaper found up to 1 000 Mb/s of frames, the highest rate that was sent"
    )
    assert "too few bursts" in shape_sentence(
        judge_direction(Direction.OUT, [], datagram_bytes=1_472, frame_bytes=1_514)
    )


def test_the_numbers_say_of_what_they_are() -> None:
    """Rates of frames and of payload; what a burst is in time, and whether TCP has room in it."""
    rows = {name: plain(value) for name, value in shape_numbers(shape(SHAPED), 5_000_000, "db-02")}
    assert rows["rate"].startswith("CIR 100 Mb/s of Ethernet frames (100 Mb/s to 100 Mb/s), 97.2")
    assert rows["burst"] == "CBS 50 000 bytes (50 000 bytes to 50 000 bytes), 4 ms of CIR"
    assert rows["queue"] == "125 000 bytes, 10 ms of waiting when it is full"
    assert rows["TCP"] == "the burst does not hold a round trip at CIR: 62 500 bytes in 5 ms"
    assert "holds a round trip" in dict(shape_numbers(shape(SHAPED), 1_000_000, "db-02"))["TCP"]
    open_ended = dict(shape_numbers(shape(replace(SHAPED, has_loss=False), is_settled=False), None, "db-02"))
    assert plain(open_ended["burst"]).startswith("CBS at least 50 000 bytes")
    assert plain(open_ended["queue"]).startswith("more than 125 000 bytes")
    assert "TCP" not in open_ended
    line = dict(shape_numbers(shape(replace(SHAPED, cbs_bytes=1_514.0)), 1_000_000, "db-02"))
    assert {"burst", "TCP"}.isdisjoint(line)
    assert shape_numbers(shape(replace(POLICED, cir_bit_s=None)), 1_000_000, "db-02") == []


def test_the_command_quotes_a_peer_and_names_the_way_in() -> None:
    """The user may paste it."""
    assert fitting_command(shape(POLICED), "db-02") == (
        "linkgauge run db-02 --workload udp --datagram 1472 --rate 95200K"
    )
    assert fitting_command(shape(POLICED, Direction.IN), "a b") == (
        "linkgauge run 'a b' --workload udp --direction in --datagram 1472 --rate 95200K"
    )


def test_both_directions_are_printed_with_their_numbers() -> None:
    """What is unknown has none."""
    policed = BurstReading(20e6, 30e3, 60_000, True, False, 0.0, 0.0, 1e9)
    ways = (
        judge_direction(Direction.OUT, [policed] * 10, datagram_bytes=1_472, frame_bytes=1_514),
        judge_direction(Direction.IN, [], datagram_bytes=1_472, frame_bytes=1_514),
    )
    lines = list(map(plain, shape_lines(ShapeResult("db-02", 4, 3_000_000, ways))))
    assert lines == [
        "policer or shaper to db-02, IPv4, round trip 3 ms",
        "→ out a policer: it drops what is faster, without delay",
        "      rate   CIR 20 Mb/s of Ethernet frames (20 Mb/s to 20 Mb/s), 19.45 Mb/s of UDP payload",
        "      burst  CBS 30 000 bytes (30 000 bytes to 30 000 bytes), 12 ms of CIR",
        "      TCP    the burst holds a round trip at CIR: 7 500 bytes in 3 ms",
        "      fits   linkgauge run db-02 --workload udp --datagram 1472 --rate 19M",
        "← in  not measured: too few bursts could be read; try again without other load",
    ]
