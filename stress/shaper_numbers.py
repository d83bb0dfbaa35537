"""Policers and shapers of known rate and burst, and the numbers that `linkgauge shape` prints of them.

Usage: make stress ARGS="shaper_numbers --rates 5 50 500 --makers tbf policer"

Each case is two or three network namespaces with a token bucket between them, in each direction or in one:

    tbf      tc-tbf(8): a shaper with a queue of 50 ms, which drops what does not fit
    fifo     tbf with a bucket of one frame and a long queue: a slow line, which must not be called a policer
    policer  nftables, `limit rate over N bytes/second burst M bytes drop` at the receiver's interface
    short    tbf with a queue of one packet: it drops what exceeds it, as a policer does
    relay    a policer of our own: `wire_relay` carries the frames between two devices of a third namespace
    htb      tc-htb(8) with rate, ceil, burst and cburst

A case is right if the kind is, CIR is within 2 %, and CBS within 15 % or a frame;
of a fifo the kind alone. A test is void if the hypervisor
took more than 5 % of the machine's time. nftables counts IP packets, the others Ethernet frames. Linux gives a
bucket of nftables the tokens of a second besides its burst. Datagrams go one by one, so that no bucket sees several
packets as one; larger ones than a bucket never pass.

Prints each case, then right and total for each maker, and CLEAN if all are right. 15 s to two minutes a case.
Needs root, iproute2, ethtool and nftables.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from end_to_end.namespaces import Namespaces, run_within
from linkgauge.engine.host.cpu import read_core_times
from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.model.serialization import encode
from stolen_time import MOST_STOLEN, stolen_share
from wire_relay import Wire

MAKERS: Final = ("tbf", "fifo", "short", "policer", "relay", "htb")
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
    "short": "policer",
    "relay": "policer",
}
_RELAY_BIT_S: Final = 2_000_000_000


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

    def __str__(self) -> str:
        size = "" if self.datagram_bytes is None else f", datagrams of {self.datagram_bytes}"
        offloads = "" if self.has_offloads else ", offloads off"
        burst = f"{self.burst_bytes / 1e3:g} KB"
        where = "" if len(self.directions) > 1 else f", {next(iter(self.directions))} only"
        return f"{self.maker:<7} {self.mbit_s:>3g} Mb/s {burst:>7}{where}{size}{offloads}, IPv{self.version}"

    @property
    def true_burst_bytes(self) -> float:
        """The size of the bucket: nftables adds the tokens of a second."""
        return self.burst_bytes + (self.mbit_s * 1e6 / 8 if self.maker == "policer" else 0)


def draw_cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield the cases of the command line."""
    for maker in options.makers:
        bursts = [0] if maker == "fifo" else options.bursts
        for mbit_s in options.rates:
            for kilobytes in bursts:
                case = Case(maker, mbit_s, round(kilobytes * 1e3) or _FRAME_BYTES)
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
        has_relay = case.maker == "relay"
        spaces = Namespaces(3 if has_relay else 2)
        self._stack.callback(spaces.close)
        self.near, self.far = spaces.entries[0], spaces.entries[-1]
        try:
            if has_relay:
                middle = spaces.entries[1]
                for device, pid in (("near0", spaces.pids[0]), ("far0", spaces.pids[2])):
                    run_within(
                        middle,
                        "ip",
                        "link",
                        "add",
                        f"relay{device}",
                        "type",
                        "veth",
                        "peer",
                        "name",
                        device,
                        "netns",
                        pid,
                    )
                    run_within(middle, "ip", "link", "set", f"relay{device}", "up")
            else:
                run_within(
                    self.near,
                    "ip",
                    "link",
                    "add",
                    "near0",
                    "type",
                    "veth",
                    "peer",
                    "name",
                    "far0",
                    "netns",
                    spaces.pids[1],
                )
            for entry, device, place in ((self.near, "near0", 1), (self.far, "far0", 2)):
                run_within(entry, "ip", "link", "set", "lo", "up")
                run_within(entry, "ip", "addr", "add", f"{_address(place, 4)}/24", "dev", device)
                run_within(entry, "ip", "addr", "add", f"{_address(place, 6)}/64", "dev", device, "nodad")
                run_within(entry, "ip", "link", "set", device, "up")
                if not case.has_offloads:
                    command = [*entry, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"]
                    subprocess.run(command, check=True, capture_output=True, timeout=_DEADLINE_S)
            if has_relay:
                self._relay(spaces.entries[1], case)
            else:
                for direction in case.directions:
                    self._add(case, direction)
        except BaseException:
            self.close()
            raise

    def _add(self, case: Case, direction: str) -> None:
        is_out = direction == "out"
        sender, device = (self.near, "near0") if is_out else (self.far, "far0")
        receiver, other = (self.far, "far0") if is_out else (self.near, "near0")
        rate, burst = f"{case.mbit_s:g}mbit", str(case.burst_bytes)
        queue = str(
            max(3 * _FRAME_BYTES, round(case.mbit_s * 1e3 / 8 * (_FIFO_MS if case.maker == "fifo" else _QUEUE_MS)))
        )
        if case.maker == "short":
            queue = str(_ONE_PACKET_BYTES)
        if case.maker in {"tbf", "fifo", "short"}:
            run_within(
                sender,
                "tc",
                "qdisc",
                "add",
                "dev",
                device,
                "root",
                "tbf",
                "rate",
                rate,
                "burst",
                burst,
                "limit",
                queue,
            )
        elif case.maker == "htb":
            run_within(sender, "tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "1")
            of_class = ("tc", "class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb")
            run_within(sender, *of_class, "rate", rate, "ceil", rate, "burst", burst, "cburst", burst)
            run_within(sender, "tc", "qdisc", "add", "dev", device, "parent", "1:1", "bfifo", "limit", queue)
        else:
            rule = f"limit rate over {round(case.mbit_s * 1e6 / 8)} bytes/second burst {burst} bytes drop"
            hook = f"type filter hook ingress device {other} priority 0;"
            run_within(receiver, "nft", f"table netdev policer {{\nchain rules {{\n{hook}\n{rule}\n}}\n}}")

    def _relay(self, middle: list[str], case: Case) -> None:
        link = LabLink(_RELAY_BIT_S, 1_500, 1_500, 0, "ethernet", burst_bytes=1_514, buffer_bytes=8 << 20)
        wire = Wire(link, round(case.mbit_s * 1e6), case.burst_bytes)
        script = str(Path(__file__).with_name("wire_relay.py"))
        command = [*middle, sys.executable, script, "relaynear0", "relayfar0", json.dumps(encode(wire))]
        process = subprocess.Popen(command, stdin=subprocess.PIPE)
        self._stack.callback(process.communicate, timeout=_DEADLINE_S)

    def close(self) -> None:
        """End the namespaces."""
        self._stack.close()


def run_case(case: Case) -> dict[str, Any]:
    """Return the document of a case's measurement."""
    path = BucketPath(case)
    endpoint = None
    try:
        endpoint = subprocess.Popen(
            [*path.far, *_program("endpoint", "--open")],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert endpoint.stdout is not None
        assert "listening" in endpoint.stdout.readline()
        host = _address(2, case.version)
        host = f"[{host}]" if case.version == 6 else host
        options = ["--direction", "duplex" if len(case.directions) > 1 else next(iter(case.directions)), "--json"]
        if case.datagram_bytes is not None:
            options += ["--datagram", str(case.datagram_bytes)]
        command = [*path.near, *_program("shape", host, "--open", *options)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_DEADLINE_S)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)
    finally:
        if endpoint is not None:
            endpoint.terminate()
            endpoint.communicate(timeout=_DEADLINE_S)
        path.close()


def _program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "linkgauge", *arguments]


def judge(case: Case, document: dict[str, Any], direction: str) -> tuple[bool, str]:
    """Return whether a direction's numbers are right, and the numbers."""
    found = document[direction]
    if found["cir_mbit_s"] is None:
        return False, f"{direction}: {found['limit']}"
    frame = found["frame_bytes"] - (_ETHERNET_BYTES if case.maker == "policer" else 0)
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


def _try(case: Case) -> bool | None:
    """Measure a case; return whether it is right, None if it is void."""
    before = read_core_times()
    try:
        document = run_case(case)
        every = [judge(case, document, direction) for direction in case.directions]
    except (AssertionError, subprocess.SubprocessError) as error:
        every = [(False, f"not run: {error}")]
    is_right = all(right for right, _ in every)
    stolen = stolen_share(before)
    word = "RIGHT" if is_right else "WRONG" if stolen <= MOST_STOLEN else f"void ({stolen:.0%} stolen)"
    print(f"{word}: {case}: {'; '.join(text for _, text in every)}", flush=True)
    return is_right if is_right or stolen <= MOST_STOLEN else None


def main() -> None:
    """Run the cases, and exit with 1 if one is wrong."""
    if os.geteuid() != 0:
        sys.exit("token buckets are made in network namespaces: run it as root")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--makers", nargs="+", choices=MAKERS, default=list(MAKERS))
    parser.add_argument("--rates", nargs="+", type=float, default=[5, 20, 100, 500], metavar="MBIT_S")
    parser.add_argument("--bursts", nargs="+", type=float, default=[10, 100, 500, 2_000], metavar="KB")
    parser.add_argument("--direction", choices=("out", "in", "duplex"), default="duplex")
    parser.add_argument("--ip", type=int, choices=(4, 6), default=4)
    parser.add_argument("--datagram", type=int, metavar="BYTES")
    parser.add_argument("--offloads-off", action="store_true")
    options = parser.parse_args()
    outcomes: dict[str, list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKGAUGE_DATA_DIR"] = folder
        for case in draw_cases(options):
            is_right = _try(case)
            if is_right is not None:
                outcomes[case.maker].append(is_right)
    for maker, rights in outcomes.items():
        print(f"{maker:<8} {sum(rights):>3}/{len(rights)}")
    every = [right for rights in outcomes.values() for right in rights]
    is_clean = bool(every) and all(every)
    print("CLEAN" if is_clean else "not all are right")
    sys.exit(not is_clean)


if __name__ == "__main__":
    main()
