"""The cases of the matrix of iperf3, and what sound figures of each are."""

import itertools
from dataclasses import dataclass
from typing import Final

from .iperf3_programs import Direction, Report

FEATURES: Final = ("time", "bytes", "blocks", "omit", "window", "mss", "length", "rate", "output")
_BYTES: Final = 1_000_000
_BLOCKS: Final = 40
_LENGTH: Final = {"tcp": 16_000, "udp": 1_000}
_BURST_MBIT: Final = 5  # what a kernel sends at once before its pacing begins: ten segments of loopback
_BUFFER_BYTES: Final = 512 * 1024
_LOSS_TOLERANCE: Final = 0.5  # a busy machine fills the queue of a receiver


@dataclass(frozen=True)
class Case:
    """One cell of the matrix."""

    transport: str
    way: str  # as the client sees it: out, in or duplex
    parallel: int
    feature: str
    stream_mbit_s: int = 16  # nothing here depends on how fast this machine is

    def __str__(self) -> str:
        return f"{self.transport}-{self.way}-{self.parallel}-{self.feature}"

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions that carry data."""
        return ("out", "in") if self.way == "duplex" else (self.way,)

    @property
    def rate_mbit_s(self) -> int:
        """The rate of a direction."""
        return self.stream_mbit_s * self.parallel

    @property
    def amount(self) -> int | None:
        """The bytes after which the test ends; None where the time ends it."""
        return {"bytes": _BYTES, "blocks": _BLOCKS * _LENGTH[self.transport]}.get(self.feature)

    @property
    def is_for_own_client(self) -> bool:
        """Whether `linkgauge run` has such a test: datagrams have no window, MSS or amount there."""
        without = {"tcp": {"blocks", "output"}, "udp": {"blocks", "output", "bytes", "window", "mss"}}
        return self.feature not in without[self.transport]

    def stock_options(self) -> list[str]:
        """Return the options of a stock client."""
        options = ["-u"] if self.transport == "udp" else []
        options += {"out": [], "in": ["-R"], "duplex": ["--bidir"]}[self.way]
        options += ["-P", str(self.parallel), "-b", f"{self.stream_mbit_s}M"]
        length = _LENGTH[self.transport]
        return (
            options
            + {
                "time": ["-t", "1"],
                "bytes": ["-n", str(_BYTES)],
                "blocks": ["-k", str(_BLOCKS), "-l", str(length)],
                "omit": ["-t", "1", "-O", "1"],
                "window": ["-t", "1", "-w", "64K"],
                "mss": ["-t", "1", "-M", "1000"],
                "length": ["-t", "1", "-l", str(length)],
                "rate": ["-t", "1"],
                "output": ["-t", "1", "--get-server-output"],
            }[self.feature]
        )

    def own_options(self) -> list[str]:
        """Return the options of `linkgauge run`."""
        options = ["--workload", "udp"] if self.transport == "udp" else []
        options += ["--direction", self.way, "--sessions", str(self.parallel)]
        options += ["--rate", f"{self.rate_mbit_s}M", "--interval", "100ms", "--json"]
        size = ["--datagram", "1000"] if self.transport == "udp" else ["--block", "16000"]
        timed = ["--seconds", "1", "--warmup", "0"]
        return (
            options
            + {
                "time": timed,
                "bytes": ["--bytes", str(_BYTES), "--warmup", "0"],
                "omit": ["--seconds", "2", "--warmup", "1"],
                "window": [*timed, "--window", "64K"],
                "mss": [*timed, "--mss", "1000"],
                "length": [*timed, *size],
                "rate": timed,
            }[self.feature]
        )

    def explain_impossible(self, version: tuple[int, ...], *, is_client: bool) -> str | None:
        """Return why this version of iperf3 has no such case in a role; None where it has."""
        if self.way == "duplex" and version < (3, 7):
            return "iperf3 has --bidir since 3.7"
        if is_client and self.way == "in" and self.amount is not None and (3, 7) <= version < (3, 10):
            return "clients of 3.7 to 3.9 count only what they send: -R with -n or -k never ends"
        return None


CASES: Final = [
    Case(*cell) for cell in itertools.product(("tcp", "udp"), ("out", "in", "duplex"), (1, 4), FEATURES)
]


def check_report(case: Case, report: Report) -> None:
    """Check what an iperf3 printed of a test."""
    assert report.error is None
    for way in case.ways:
        direction = report.direction(way)
        assert len(direction.streams) == case.parallel, report.document["end"]
        check_direction(case, direction)


def check_direction(case: Case, direction: Direction) -> None:
    """Check the figures of one direction."""
    sent, received = direction.total("sent_bytes"), direction.total("received_bytes")
    # What waits in a sender's buffer when the omitted part ends is received in the part that is measured.
    buffered = case.parallel * _BUFFER_BYTES if case.feature == "omit" else 0
    assert 0 < received <= sent * 1.02 + 200_000 + buffered
    if case.transport == "udp":
        packets, lost = direction.total("packets"), direction.total("lost")
        assert 0 <= lost <= packets * _LOSS_TOLERANCE
    if case.amount is None:
        assert all(0.8 < stream.seconds < 3 for stream in direction.streams)
        assert case.rate_mbit_s * 0.5 < direction.mbit_s < case.rate_mbit_s * 1.3 + _BURST_MBIT * case.parallel
