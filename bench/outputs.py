"""The output of each tool: the rate in it, or the words in which the tool says why it has none."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_MOST_RATE = 1e15
_WORDS_LENGTH = 120
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NOT_THERE = (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError, ZeroDivisionError)
_SAYS_WHY = re.compile(
    r"error|unrecognized|invalid|unknown option|fail|refused|unable|cannot|can't|not found", re.IGNORECASE
)

Parser = Callable[[str], float]
DatagramParser = Callable[[str], "Datagrams"]


@dataclass(frozen=True)
class Datagrams:
    """What a tool counted of its datagrams: at the sender, and those that the receiver got.

    `skipped` are those that the sender left out because it was late; None if it does not tell.
    """

    sent: int
    received: int
    skipped: int | None = None

    @property
    def lost_share(self) -> float:
        """The share of what was sent that did not arrive."""
        return max(0.0, 1 - self.received / self.sent) if self.sent else 0.0


class OutputError(Exception):
    """The output of a tool has no rate that could be one."""


def read_rate(parse: Parser, output: str) -> float:
    """Return the rate in a tool's output. Raises OutputError if there is none, or an impossible one."""
    try:
        rate = float(parse(output))
    except _NOT_THERE as error:
        raise OutputError(failure_words(output, "") if output.strip() else "printed nothing") from error
    if not (math.isfinite(rate) and 0 < rate < _MOST_RATE):
        raise OutputError(f"printed an impossible rate: {rate:g}")
    return rate


def read_datagrams(parse: DatagramParser, output: str) -> Datagrams:
    """Return the counts in a tool's output. Raises OutputError if there are none."""
    try:
        return parse(output)
    except _NOT_THERE as error:
        raise OutputError(f"printed no count of datagrams: {failure_words(output, '')}") from error


def failure_words(output: str, errors: str) -> str:
    """Return the line in which a tool says why it failed, or its last line, as printable text."""
    lines = [_printable(line) for text in (errors, output) for line in text.splitlines()]
    lines = [line for line in lines if line]
    reason = next((line for line in lines if _SAYS_WHY.search(line)), lines[-1] if lines else "printed nothing")
    return reason[:_WORDS_LENGTH]


def _printable(line: str) -> str:
    text = "".join(character for character in _ESCAPES.sub("", line) if character.isprintable())
    return " ".join(text.split())


def linkgauge_rate(output: str) -> float:
    """Return bits a second from the JSON document of a run."""
    return json.loads(output)["measured"]["total"]["mbit_s"] * 1e6


def linkgauge_transactions(output: str) -> float:
    """Return transactions a second from the JSON document of a run."""
    return json.loads(output)["measured"]["total"]["transactions_s"]


def linkgauge_datagrams(output: str) -> Datagrams:
    """Return the counts of a run's direction out, of the same datagrams at both ends."""
    udp = _udp_out(output)["udp"]
    return Datagrams(int(udp["received"]) + int(udp["lost"]), int(udp["received"]), udp.get("skipped"))


def linkgauge_datagram_rate(output: str) -> float:
    """Return the datagrams a second that the receiver got, each counted once."""
    return _udp_out(output)["packets_s"]


def linkgauge_sent_rate(output: str) -> float:
    """Return bits of payload a second at the sender."""
    return _udp_out(output)["udp"]["sent_mbit_s"] * 1e6


def _udp_out(output: str) -> Any:
    return json.loads(output)["measured"]["out"]


def iperf3_rate(output: str) -> float:
    """Return bits a second at the receiver, from `-J`."""
    return json.loads(output)["end"]["sum_received"]["bits_per_second"]


def iperf3_datagrams(output: str) -> Datagrams:
    """Return the counts of both ends. The receiver does not know of what was lost after the last arrival."""
    end = json.loads(output)["end"]
    received = end["sum_received"]
    return Datagrams(int(end["sum_sent"]["packets"]), int(received["packets"]) - int(received["lost_packets"]))


def iperf3_datagram_rate(output: str) -> float:
    """Return the datagrams a second that the receiver got."""
    return iperf3_datagrams(output).received / json.loads(output)["end"]["sum_received"]["seconds"]


def iperf_rate(output: str) -> float:
    """Return bits a second from `-y C`: a line for each session, and in some versions their sum as session -1."""
    rows = [line.split(",") for line in output.strip().splitlines()]
    sums = [float(row[8]) for row in rows if row[5] == "-1"]
    return sums[-1] if sums else sum(float(row[8]) for row in rows)


def nuttcp_rate(output: str) -> float:
    """Return bits a second from the one line of a test."""
    return float(_found(r"=\s*([\d.]+) Mbps", output)[1]) * 1e6


def qperf_rate(output: str) -> float:
    """Return bits a second from tcp_bw, which prints about three digits."""
    match = _found(r"bw\s*=\s*([\d.,]+)\s*(\w+)/sec", output)
    return float(match[1].replace(",", "")) * {"KB": 8e3, "MB": 8e6, "GB": 8e9}[match[2]]


def qperf_transactions(output: str) -> float:
    """Return transactions a second from tcp_lat, whose latency is one way: half of a round trip."""
    match = _found(r"latency\s*=\s*([\d.,]+)\s*(\w+)", output)
    return 1 / (2 * float(match[1].replace(",", "")) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[match[2]])


def netperf_rate(output: str) -> float:
    """Return bits a second from `-P 0`: sizes, seconds and the rate in 10^6 bits a second."""
    return float(_row_of_numbers(output, 5)[-1]) * 1e6


def netperf_transactions(output: str) -> float:
    """Return transactions a second from `-P 0`: one line ends with it, the next has only the other end's sizes."""
    return float(_row_of_numbers(output, 6)[-1])


def neper_rate(output: str) -> float:
    """Return bits a second at the server, which the client of a stream prints."""
    return float(_found(r"^remote_throughput=(\d+)", output)[1])


def neper_transactions(output: str) -> float:
    """Return transactions a second of tcp_rr and tcp_crr."""
    return float(_found(r"^throughput=([\d.]+)", output)[1])


def xfr_rate(output: str) -> float:
    """Return bits a second from `--json`, which follows lines of progress."""
    return float(json.loads(output[output.index("{") :])["throughput_mbps"]) * 1e6


def xfr_datagrams(output: str) -> Datagrams:
    """Return the counts of both ends."""
    counts = json.loads(output[output.index("{") :])["udp_stats"]
    return Datagrams(int(counts["packets_sent"]), int(counts["packets_received"]))


def ethr_rate(output: str) -> float:
    """Return the mean of the lines of each second, which have about two digits: there is no sum."""
    samples = re.findall(r"TCP\s+\d+-\d+ sec\s+([\d.]+)([KMGT]?)", output)
    if not samples:
        raise ValueError(output)
    factors = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    return sum(float(number) * factors[unit] for number, unit in samples) / len(samples)


def _found(pattern: str, output: str) -> re.Match[str]:
    match = re.search(pattern, output, re.MULTILINE)
    if match is None:
        raise ValueError(output)
    return match


def _row_of_numbers(output: str, columns: int) -> list[str]:
    for line in output.splitlines():
        fields = line.split()
        if len(fields) == columns and all(re.fullmatch(r"[\d.]+", text) for text in fields):
            return fields
    raise ValueError(output)
