"""Policers and shapers of known rate and burst, and the numbers that `linkgauge shape` prints of them.

Usage: make stress ARGS="shaper_numbers --rates 5 50 500 --makers tbf policer"

Each case is two or three network namespaces with a token bucket between them, in each direction or in one:

    tbf      tc-tbf(8): a shaper with a queue of 50 ms, which drops what does not fit
    fifo     tbf with a bucket of one frame and a long queue: a slow line, which must not be called a policer
    policer  a token bucket in the kernel at the receiver's interface (kernel_policer)
    nftables `limit rate over N bytes/second burst M bytes drop` at the receiver's interface
    short    tbf with a queue of one packet: it drops what exceeds it, as a policer does
    relay    a policer of our own: `wire_relay` carries the frames between two devices of a third namespace, up to
             32 together, so that above 50 Mb/s it has no bucket of that size
    htb      tc-htb(8) with rate, ceil, burst and cburst
    both     a bridge of a third namespace with a slow line, of 1.5 to 8 times the rate, and behind it a policer

A case is right if the kind is, CIR is within 2 %, and CBS within 15 % or a frame; of a fifo the kind alone. A test
is void if the hypervisor took more than 5 % of the machine's time. nftables counts IP packets, the others Ethernet
frames. Linux gives a bucket of nftables the tokens of a second besides its burst; above 16 MiB no limit is to be
found. Datagrams go one by one, so that no bucket sees several packets as one; larger ones than a bucket never pass.

Prints each case, then right and total for each maker, and CLEAN if all are right. 15 s to two minutes a case.
Needs root, iproute2, ethtool and nftables.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from case_runs import endpoint_at, finish, program, require_root, run_cases
from end_to_end.namespaces import Namespaces, run_within
from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.model.serialization import encode
from wire_relay import Wire

MAKERS: Final = ("tbf", "fifo", "short", "policer", "nftables", "relay", "htb", "both")
_DEADLINE_S: Final = 400.0
_CIR_WITHIN: Final = 0.02
_CBS_WITHIN: Final = 0.15
_QUEUE_MS: Final = 50
_FIFO_MS: Final = 300
_ETHERNET_BYTES: Final = 14
_FRAME_BYTES: Final = 1_514
_ONE_PACKET_BYTES: Final = 1_600
_KINDS: Final = {
    "tbf": "shaper",
    "htb": "shaper",
    "fifo": "line",
    "policer": "policer",
    "nftables": "policer",
    "short": "policer",
    "relay": "policer",
    "both": "policer",
}
_RELAY_BIT_S: Final = 2_000_000_000
_RELAY_MBIT_S: Final = 50
_RELAY_BATCH_BYTES: Final = 32 * 1_514  # which it reads together and sends on together
_MOST_BURST_BYTES: Final = 16 << 20  # that a burst shows
_LINE_TIMES: Final = (1.5, 2.0, 3.0, 8.0)  # the policer's rate, in the order of the cases of `both`
_LINE_BYTES: Final = 5_000
_LINE_MS: Final = 1_000
_R2Q: Final = 1_000  # the quantum of htb's class, which is alone: no warning


@dataclass(frozen=True)
class Case:
    """A token bucket: its maker, its rate and size, and what is varied besides."""

    maker: str
    mbit_s: float
    burst_bytes: int
    directions: tuple[str, ...] = ("out", "in")
    version: int = 4
    datagram_bytes: int | None = None
    has_offloads: bool = True
    line_times: float = 0.0

    def __str__(self) -> str:
        size = "" if self.datagram_bytes is None else f", datagrams of {self.datagram_bytes}"
        offloads = "" if self.has_offloads else ", offloads off"
        burst = f"{self.burst_bytes / 1e3:g} KB"
        line = f", line of {self.line_times * self.mbit_s:g}" if self.line_times else ""
        where = "" if len(self.directions) > 1 else f", {next(iter(self.directions))} only"
        return f"{self.maker:<7} {self.mbit_s:>3g} Mb/s {burst:>7}{line}{where}{size}{offloads}, IPv{self.version}"

    @property
    def true_burst_bytes(self) -> float:
        """The size of the bucket.

        nftables adds the tokens of a second (nft_limit_init). htb sends as long as its tokens are not below 0, so
        that one frame more passes (htb_class_mode).
        """
        more = {"nftables": self.mbit_s * 1e6 / 8, "htb": self.datagram_bytes or _FRAME_BYTES}
        return self.burst_bytes + more.get(self.maker, 0)


def draw_cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases of the command line."""
    number = 0
    for maker in options.makers:
        bursts = [0] if maker == "fifo" else options.bursts
        for mbit_s in options.rates:
            for kilobytes in bursts:
                if maker == "relay" and mbit_s > _RELAY_MBIT_S and kilobytes * 1e3 <= 2 * _RELAY_BATCH_BYTES:
                    continue
                case = Case(maker, mbit_s, round(kilobytes * 1e3) or _FRAME_BYTES)
                if maker == "both":
                    case = replace(case, line_times=_LINE_TIMES[number % len(_LINE_TIMES)])
                    number += 1
                yield replace(
                    case,
                    version=options.ip,
                    directions=("out", "in") if options.direction == "duplex" else (options.direction,),
                    datagram_bytes=options.datagram,
                    has_offloads=not options.offloads_off,
                )


def _address(place: int, version: int) -> str:
    return f"10.79.0.{place}" if version == 4 else f"fd79::{place}"


class BucketPath:
    """Two hosts with a case's token bucket between them. `near` and `far` are what command lines begin with."""

    def __init__(self, case: Case) -> None:
        self._stack = ExitStack()
        has_middle = case.maker in {"relay", "both"}
        self._spaces = Namespaces(3 if has_middle else 2)
        self._stack.callback(self._spaces.close)
        entries = self._spaces.entries
        self.near, self.far = entries[0], entries[-1]
        try:
            if has_middle:
                self._connect(1, "relaynear0", 0, "near0")
                self._connect(1, "relayfar0", 2, "far0")
                run_within(entries[1], "ip", "link", "set", "relaynear0", "up")
                run_within(entries[1], "ip", "link", "set", "relayfar0", "up")
            else:
                self._connect(0, "near0", 1, "far0")
            self._set_up(self.near, "near0", 1, has_offloads=case.has_offloads)
            self._set_up(self.far, "far0", 2, has_offloads=case.has_offloads)
            if case.maker == "relay":
                self._relay(entries[1], case)
            else:
                if has_middle:
                    self._bridge(entries[1], case)
                for direction in case.directions:
                    self._add(case, direction)
        except BaseException:
            self.close()
            raise

    def _connect(self, left: int, here: str, right: int, there: str) -> None:
        peer = ("peer", "name", there, "netns", self._spaces.pids[right])
        run_within(self._spaces.entries[left], "ip", "link", "add", here, "type", "veth", *peer)

    def _set_up(self, entry: list[str], device: str, place: int, *, has_offloads: bool) -> None:
        run_within(entry, "ip", "link", "set", "lo", "up")
        run_within(entry, "ip", "addr", "add", f"{_address(place, 4)}/24", "dev", device)
        run_within(entry, "ip", "addr", "add", f"{_address(place, 6)}/64", "dev", device, "nodad")
        run_within(entry, "ip", "link", "set", device, "up")
        if not has_offloads:
            command = [*entry, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"]
            subprocess.run(command, check=True, capture_output=True, timeout=_DEADLINE_S)

    def _add(self, case: Case, direction: str) -> None:
        """Put the bucket where packets of a direction leave, or a policer where they arrive."""
        ends = ((self.near, "near0"), (self.far, "far0"))
        (sender, device), (receiver, other) = ends if direction == "out" else ends[::-1]
        rate, burst = f"{case.mbit_s:g}mbit", str(case.burst_bytes)
        hold_ms = _FIFO_MS if case.maker == "fifo" else _QUEUE_MS
        queue = str(max(3 * _FRAME_BYTES, round(case.mbit_s * 1e3 / 8 * hold_ms)))
        if case.maker == "short":
            queue = str(_ONE_PACKET_BYTES)
        add = ("tc", "qdisc", "add", "dev", device)
        if case.maker in {"tbf", "fifo", "short"}:
            run_within(sender, *add, "root", "tbf", "rate", rate, "burst", burst, "limit", queue)
        elif case.maker == "htb":
            run_within(sender, *add, "root", "handle", "1:", "htb", "default", "1", "r2q", str(_R2Q))
            of_class = ("tc", "class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb")
            run_within(sender, *of_class, "rate", rate, "ceil", rate, "burst", burst, "cburst", burst)
            run_within(sender, *add, "parent", "1:1", "bfifo", "limit", queue)
        elif case.maker in {"policer", "both"}:
            self._police(receiver, other, case)
        else:
            rule = f"limit rate over {round(case.mbit_s * 1e6 / 8)} bytes/second burst {burst} bytes drop"
            hook = f"type filter hook ingress device {other} priority 0;"
            run_within(receiver, "nft", f"table netdev policer {{\nchain rules {{\n{hook}\n{rule}\n}}\n}}")

    def _bridge(self, middle: list[str], case: Case) -> None:
        """Connect both ends by a bridge that has a slow line with a long queue in each direction."""
        rate = f"{case.line_times * case.mbit_s:g}mbit"
        queue = str(round(case.line_times * case.mbit_s * 1e3 / 8 * _LINE_MS))
        run_within(middle, "ip", "link", "add", "bridge0", "type", "bridge")
        run_within(middle, "ip", "link", "set", "bridge0", "up")
        for device in ("relaynear0", "relayfar0"):
            run_within(middle, "ip", "link", "set", device, "master", "bridge0")
            add = ("tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", rate)
            run_within(middle, *add, "burst", str(_LINE_BYTES), "limit", queue)

    def _police(self, entry: list[str], device: str, case: Case) -> None:
        script = str(Path(__file__).with_name("kernel_policer.py"))
        numbers = (str(round(case.mbit_s * 1e6)), str(case.burst_bytes))
        process = self._start([*entry, sys.executable, script, device, *numbers])
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"

    def _relay(self, middle: list[str], case: Case) -> None:
        link = LabLink(_RELAY_BIT_S, 1_500, 1_500, 0, "ethernet", burst_bytes=1_514, buffer_bytes=8 << 20)
        wire = Wire(link, round(case.mbit_s * 1e6), case.burst_bytes)
        script = str(Path(__file__).with_name("wire_relay.py"))
        self._start([*middle, sys.executable, script, "relaynear0", "relayfar0", json.dumps(encode(wire))])

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        """Start a process that ends with its input."""
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._stack.callback(process.communicate, timeout=_DEADLINE_S)
        return process

    def close(self) -> None:
        """End the processes and the namespaces."""
        self._stack.close()


def run_case(case: Case) -> tuple[bool, str]:
    """Measure a case; return whether each direction is right, and the numbers."""
    document = _measure(case)
    every = [judge(case, document, direction) for direction in case.directions]
    return all(right for right, _ in every), "; ".join(text for _, text in every)


def _measure(case: Case) -> dict[str, Any]:
    """Return the document of a case's measurement."""
    path = BucketPath(case)
    try:
        with endpoint_at(path.far):
            host = _address(2, case.version)
            host = f"[{host}]" if case.version == 6 else host
            options = [
                "--direction",
                "duplex" if len(case.directions) > 1 else next(iter(case.directions)),
                "--json",
            ]
            if case.datagram_bytes is not None:
                options += ["--datagram", str(case.datagram_bytes)]
            command = [*path.near, *program("shape", host, "--open", *options)]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_DEADLINE_S)
            assert done.stdout, done.stderr
            return json.loads(done.stdout)
    finally:
        path.close()


def judge(case: Case, document: dict[str, Any], direction: str) -> tuple[bool, str]:
    """Return whether a direction's numbers are right, and the numbers."""
    found = document[direction]
    if found["cir_mbit_s"] is None:
        return case.true_burst_bytes > _MOST_BURST_BYTES, f"{direction}: {found['limit']}"
    frame = found["frame_bytes"] - (_ETHERNET_BYTES if case.maker == "nftables" else 0)
    share = frame / found["frame_bytes"]
    cir, cbs = found["cir_mbit_s"] * share, found["cbs_bytes"] * share
    off, miss = cir / case.mbit_s - 1, cbs - case.true_burst_bytes
    is_burst = abs(miss) <= max(_CBS_WITHIN * case.true_burst_bytes, frame)
    is_kind = found["limit"] == _KINDS[case.maker] or (case.maker == "fifo" and found["limit"] != "policer")
    queue = "" if found["queue_ms"] is None else f", queue {found['queue_ms']:.1f} ms"
    text = (
        f"{direction} {found['limit']}, CIR {cir:.3f} ({off:+.2%}), CBS {cbs / 1e3:.1f} KB "
        f"({miss / case.true_burst_bytes:+.1%}){queue}, {found['bursts']} bursts, "
        f"sent at {found['offered_mbit_s']:.0f}"
    )
    if case.maker == "fifo":  # a bucket of one frame loses the tokens of each late timer, so that its rate is lower
        return is_kind, text
    return is_kind and abs(off) <= _CIR_WITHIN and is_burst, text


def main() -> None:
    """Run the cases, and exit with 1 if one is wrong."""
    require_root()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--makers", nargs="+", choices=MAKERS, default=list(MAKERS))
    parser.add_argument("--rates", nargs="+", type=float, default=[5, 20, 100, 500], metavar="MBIT_S")
    parser.add_argument("--bursts", nargs="+", type=float, default=[10, 100, 500, 2_000], metavar="KB")
    parser.add_argument("--direction", choices=("out", "in", "duplex"), default="duplex")
    parser.add_argument("--ip", type=int, choices=(4, 6), default=4)
    parser.add_argument("--datagram", type=int, metavar="BYTES")
    parser.add_argument("--offloads-off", action="store_true")
    options = parser.parse_args()
    finish(run_cases(draw_cases(options), lambda case: case.maker, run_case))


if __name__ == "__main__":
    main()
