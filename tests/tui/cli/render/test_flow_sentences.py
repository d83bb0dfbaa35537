"""What is said of flows: members, ports, the parting hop, and losses that are no member's."""

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.flows.flow_counts import FlowCounts, FlowRound
from linkgauge.engine.results.flows.flow_result import DirectionFlows, FlowsResult, Transport, judge_flows
from linkgauge.engine.results.flows.member_share import member_share
from linkgauge.engine.results.flows.parting import FlowHop, Parting
from linkgauge.tui.cli.render.flow_sentences import (
    bad_ports,
    class_table,
    direction_sentences,
    heading,
    member_text,
    parting_sentence,
    port_list,
    silent_sentence,
)


def direction(lossy: int, every: int = 10, slow: int = 0, **values: int) -> DirectionFlows:
    """Return 256 flows: some lose one datagram of `every`, some are slower by 3 ms."""
    flows = [
        FlowCounts(
            40_000 + place,
            [
                FlowRound(
                    number,
                    [
                        None if place < lossy and at % every == place % every else 3_000_000 * (place < slow)
                        for at in range(200)
                    ],
                    **values,
                )
                for number in (1, 2)
            ],
        )
        for place in range(256)
    ]
    return judge_flows(Direction.OUT, flows)


def test_a_lossy_member_has_its_share_and_its_ports() -> None:
    """One in two is no other number of members."""
    judged = direction(128)
    (sentence,) = direction_sentences(judged)
    assert sentence == (
        "10 % of the packets on 128 of 256 flows are lost on the way out, 0 % on the others: "
        "about 1 of 2 members loses packets."
    )
    (ports,) = bad_ports(judged)
    assert ports.startswith("lossy ports: 40000, 40001, ")
    assert "and 64 more, which --csv and --json have" in ports
    rows = class_table(judged).rows
    assert [row[0] for row in rows] == ["good", "lossy"]
    assert rows[1][1] == "128"
    assert rows[1][3].startswith("10")


def test_a_slow_member_has_its_delay() -> None:
    """And no loss."""
    (sentence,) = direction_sentences(direction(0, slow=128))
    assert sentence.replace("\xa0", " ") == (
        "128 of 256 flows are slower by 3.00 ms on the way out: about 1 of 2 members is 3.00 ms slower."
    )


def test_a_loss_on_all_flows_is_not_one_member() -> None:
    """Of TCP it is said of segments that were sent again."""
    judged = direction(256, every=20)
    assert next(direction_sentences(judged)).endswith(
        "are lost on the way out, on all flows alike: not one member."
    )
    assert "sent again" in next(direction_sentences(judged, Transport.TCP))


def test_nothing_and_packets_that_are_balanced_one_by_one_are_said() -> None:
    """The latter show no member."""
    assert list(direction_sentences(direction(0))) == [
        "No packet is lost on the way out, and the delays of all flows are alike."
    ]
    assert "packets are balanced one by one" in next(direction_sentences(direction(0, pairs=20, reordered=5)))


def test_a_share_that_fits_several_numbers_of_members_is_a_range() -> None:
    """And one that fits none says so."""
    assert member_text(member_share(20, 0, 256), "x").startswith(
        "between 5.1 % and 12 % of flows, as if 1 of 9 to 16"
    )
    assert "more or less than one member" in member_text(member_share(190, 0, 256), "x")


def test_the_parting_names_hops_and_silent_ones() -> None:
    """Or that both flows pass the same hops."""
    hops = (FlowHop(1, ("10.0.0.1",), ("10.0.0.1",)), FlowHop(2, (), ()), FlowHop(3, ("10.0.1.1",), ("10.0.2.1",)))
    text = parting_sentence(Parting(Direction.OUT, 40_001, 40_002, hops, is_bad_reached=True))
    assert text == (
        "Port 40001 (bad) and port 40002 (good) part behind hop 1 (10.0.0.1): at hop 3, 10.0.1.1 answers "
        "instead of 10.0.2.1; hop 2 before it is silent."
    )
    same = parting_sentence(Parting(Direction.IN, 40_001, 40_002, hops[:1], is_bad_reached=True))
    assert same.endswith("pass the same hops: the bad member is within one hop, such as a LAG.")


def test_silent_flows_and_the_test_itself_are_described() -> None:
    """Ports are in order."""
    result = FlowsResult("db-02", 4, 5820, 256, 8e6, 14.2, (direction(0),), tuple(range(50_000, 50_256)))
    assert silent_sentence(result) == (
        "Nothing came back on 256 of 512 flows: about 1 of 2 members carries nothing, in one direction or both."
    )
    words = "db-02 port 5820, IPv4: 512 flows of UDP by source port, 256 bytes, "
    assert heading(result).startswith(words)
    assert port_list([3, 1, 2]) == "1, 2, 3"
