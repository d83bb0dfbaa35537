"""The rate in each tool's output: transcripts of real clients, broken ones, and the words of those that fail."""

import contextlib
import json

import outputs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outputs import Datagrams, OutputError, failure_words, read_datagrams, read_rate

IPERF = """\
19700101000000,127.0.0.1,38062,127.0.0.1,6101,1,0.0-1.0,3650093116,28921278612
19700101000000,127.0.0.1,38064,127.0.0.1,6101,2,0.0-1.0,7293108284,57786532792
"""
IPERF_WITH_SUM = IPERF + "19700101000000,127.0.0.1,0,127.0.0.1,6101,-1,0.0-1.0,10943201400,86707811404\n"
NUTTCP = " 4234.8750 MB /   1.00 sec = 35526.3405 Mbps 20 %TX 36 %RX 0 retrans 0.09 msRTT\n"
NETPERF = "131072  16384  16384    1.00     29998.89   \n"
NETPERF_RR = "16384  131072 200      1000    1.00     106406.00   \n16384  131072\n"
XFR = "[0.117]  0.0 Mbps  0 B  rtx: 0  rtt: 0.03ms\n" + json.dumps({"throughput_mbps": 58001.362945273635})
NEPER = "num_transactions=12345\nthroughput=2600.25\nthroughput_units=Mbit/s\n"
NEPER_STREAM = "throughput=1.0\nremote_throughput=57788691109\nremote_throughput_units=bit/s\n"
ETHR = "[  5]     TCP      000-001 sec   40.00G\n[  5]     TCP      001-002 sec   42.00G\n"
LINKGAUGE_UDP = {"sent": 1_002, "received": 990, "lost": 10, "skipped": 3, "sent_mbit_s": 5.6}
LINKGAUGE_OUT = json.dumps({"measured": {"out": {"mbit_s": 5.5, "packets_s": 495.0, "udp": LINKGAUGE_UDP}}})
IPERF3_UDP = json.dumps(
    {
        "end": {
            "sum_sent": {"packets": 334309},
            "sum_received": {"packets": 334300, "lost_packets": 134300, "seconds": 2.0},
        }
    }
)
XFR_UDP = "[0.008]  1.37 Gbps  552.34 KB  jitter: 0.00ms  lost: 78\n" + json.dumps(
    {"throughput_mbps": 603.46, "udp_stats": {"packets_sent": 376139, "packets_received": 108084}}
)
COUNTS = {
    "linkgauge": (outputs.linkgauge_datagrams, LINKGAUGE_OUT, Datagrams(1_000, 990, 3)),
    "iperf3": (outputs.iperf3_datagrams, IPERF3_UDP, Datagrams(334309, 200000)),
    "xfr": (outputs.xfr_datagrams, XFR_UDP, Datagrams(376139, 108084)),
}
TRANSCRIPTS = {
    "linkgauge udp": (outputs.linkgauge_datagram_rate, LINKGAUGE_OUT, 495.0),
    "linkgauge's sender": (outputs.linkgauge_sent_rate, LINKGAUGE_OUT, 5.6e6),
    "iperf3 udp": (outputs.iperf3_datagram_rate, IPERF3_UDP, 100_000.0),
    "linkgauge": (outputs.linkgauge_rate, json.dumps({"measured": {"total": {"mbit_s": 941.5}}}), 941.5e6),
    "linkgauge rr": (
        outputs.linkgauge_transactions,
        json.dumps({"measured": {"total": {"transactions_s": 52.5}}}),
        52.5,
    ),
    "iperf3": (outputs.iperf3_rate, json.dumps({"end": {"sum_received": {"bits_per_second": 5.5e10}}}), 5.5e10),
    "iperf": (outputs.iperf_rate, IPERF.splitlines()[0], 28921278612),
    "iperf, two sessions without a sum": (outputs.iperf_rate, IPERF, 86707811404),
    "iperf, two sessions and a sum": (outputs.iperf_rate, IPERF_WITH_SUM, 86707811404),
    "nuttcp": (outputs.nuttcp_rate, NUTTCP, 35526.3405e6),
    "qperf": (outputs.qperf_rate, "tcp_bw:\n    bw  =  3.07 GB/sec\n", 24.56e9),
    "qperf MB": (outputs.qperf_rate, "tcp_bw:\n    bw  =  1,070 MB/sec\n", 8.56e9),
    "qperf lat": (outputs.qperf_transactions, "tcp_lat:\n    latency  =  2.5 us\n", 200_000),
    "netperf": (outputs.netperf_rate, NETPERF, 29998.89e6),
    "netperf rr": (outputs.netperf_transactions, NETPERF_RR, 106406.0),
    "neper rr": (outputs.neper_transactions, NEPER, 2600.25),
    "neper stream": (outputs.neper_rate, NEPER_STREAM, 57788691109),
    "xfr": (outputs.xfr_rate, XFR, 58001.362945273635e6),
    "ethr": (outputs.ethr_rate, ETHR, 41e9),
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_the_rate_of_each_tool_is_read(name: str) -> None:
    """In base units, whatever the tool prints."""
    parse, output, rate = TRANSCRIPTS[name]
    assert read_rate(parse, output) == pytest.approx(rate)


@given(
    name=st.sampled_from(list(TRANSCRIPTS)),
    output=st.sampled_from(
        ["", "\x00\xff", "{}", "[]", "null", "nonsense", "= -1 Mbps", "1,2", "1e999 " * 6, "[" * 100_000]
    ),
)
def test_output_without_a_rate_fails_its_entry(name: str, output: str) -> None:
    """And nothing else: whatever a tool prints, the benchmark goes on."""
    with pytest.raises(OutputError):
        read_rate(TRANSCRIPTS[name][0], output)


@pytest.mark.parametrize("name", COUNTS)
def test_what_was_sent_and_what_arrived_is_read(name: str) -> None:
    """At both ends, so that what was lost after the last arrival counts; every cut gives an output error."""
    parse, output, counts = COUNTS[name]
    assert read_datagrams(parse, output) == counts
    for end in range(len(output)):
        with pytest.raises(OutputError):
            read_datagrams(parse, output[:end])


def test_more_that_arrives_than_was_sent_is_no_loss() -> None:
    """Both ends count for themselves; who has sent nothing has lost nothing."""
    assert Datagrams(100, 75).lost_share == 0.25
    assert Datagrams(100, 101).lost_share == 0.0
    assert Datagrams(0, 0).lost_share == 0.0


@pytest.mark.parametrize("rate", ["nan", "inf", "0", "-5", "1e16"])
def test_an_impossible_rate_is_refused(rate: str) -> None:
    """A tool that lost its connection prints 0, one that divides by no time prints inf."""
    with pytest.raises(OutputError, match="impossible"):
        read_rate(float, rate)


def test_every_cut_of_a_transcript_gives_a_rate_or_an_output_error() -> None:
    """A tool that is killed has printed a part."""
    for parse, output, _ in TRANSCRIPTS.values():
        for end in range(len(output)):
            with contextlib.suppress(OutputError):
                assert read_rate(parse, output[:end]) > 0


def test_a_failure_is_told_in_the_tools_words() -> None:
    """The line that says why, else the last one; errors before output, and nothing that moves a terminal."""
    usage = "iperf3: unrecognized option '--skip-rx-copy'\nUsage: iperf3 [-s|-c host]\n"
    assert failure_words("", usage) == "iperf3: unrecognized option '--skip-rx-copy'"
    assert failure_words("done\n", "\x1b[32m INFO\x1b[0m ready\nError: Connection refused\n  9: start_thread") == (
        "Error: Connection refused"
    )
    assert failure_words("one\ntwo\n", "") == "two"
    assert failure_words(" \n", "") == "printed nothing"
    assert len(failure_words("x" * 10_000, "")) == 120
    assert failure_words("\x07\x1b]0;title\x07error\u202e", "").isprintable()
