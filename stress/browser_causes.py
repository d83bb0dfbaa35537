"""Causes of a slow link, made on purpose: the first finding of a browser's test, and that of two endpoints.

Usage: .venv/bin/python stress/browser_causes.py [--tries 1] [--only loss,policer] [--maker lab] [--sessions 2]

Each try builds a link between two namespaces (link_makers.py), impairs it in one way, and tests it twice in turn: a
Chromium at the far end with the page of an endpoint at the near end, and linkgauge at both ends. Both have the same
preset, direction, sessions and time. A cause at the receiver is seen from its window alone if a browser receives;
two endpoints have no reader that waits as the page's then does.
Prints both rates and both first findings, and how often the browser's was one that the cause may have, and the same
as the other. Needs root and Chromium, and a quiet machine; a try takes half a minute.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from grid_cases import Case
from link_makers import MAKERS, MadeLink, open_link
from linkgauge.engine.lab.link_spec import FAR_ADDRESS, NEAR_ADDRESS
from linkgauge.engine.model.directions import Direction, End
from linkgauge.presets.lab_link import NO_FAULTS, Faults

_PORT: Final = 8_080
_BUCKET: Final = 30_000
_DEADLINE_S: Final = 60.0
_WAYS: Final = {Direction.OUT: "down", Direction.IN: "up", Direction.DUPLEX: "both"}


@dataclass(frozen=True)
class Cause:
    """One way to make a link slow; `wanted` are its findings. A slow receiver is a page that reads slowly."""

    name: str
    wanted: tuple[str, ...]
    faults: Faults = NO_FAULTS
    direction: Direction = Direction.OUT
    preset: str = "100mb-fd"
    policed_mbit_s: int = 0
    near_sysctls: tuple[str, ...] = ()
    far_sysctls: tuple[str, ...] = ()
    mss: int = 0
    line_rate_mbit_s: int = 0
    queue_ms: float | None = None
    is_receiver_slow: bool = False
    needs_small_packets: bool = False  # larger ones exceed a small send buffer


_PLAIN: Final = ("router", "one-host")  # the makers without delay, loss and policer, or without two ends
_SMALL_PACKETS: Final = ("lab", "wire-off", "wire-gso1")  # the makers whose TCP passes single packets
_DELAYED: Final = Faults(delay_ms=10)
_HEALTHY: Final = ("at-expected",)
CAUSES: Final = (
    Cause("healthy-10mb", _HEALTHY, preset="10mb-fd"),
    Cause("healthy-down", _HEALTHY),
    Cause("healthy-up", _HEALTHY, direction=Direction.IN),
    Cause("healthy-delay", _HEALTHY, Faults(delay_ms=2)),
    Cause("loss-down", ("loss",), Faults(delay_ms=5, loss_percent=1)),
    Cause("loss-up", ("loss", "unexplained"), Faults(delay_ms=5, loss_percent=1), Direction.IN),
    Cause(
        "window-small",
        ("window-clamped", "window-below-bdp"),
        _DELAYED,
        far_sysctls=("tcp_rmem=4096 65536 65536",),
    ),
    Cause(
        "buffer-small",
        ("window-below-bdp", "window-clamped"),
        _DELAYED,
        near_sysctls=("tcp_wmem=4096 32768 32768",),
        needs_small_packets=True,
    ),
    Cause("scaling-off", ("window-scaling-off",), _DELAYED, far_sysctls=("tcp_window_scaling=0",)),
    Cause("receiver-slow", ("receive-window",), is_receiver_slow=True),
    Cause("policer", ("policer",), policed_mbit_s=20),
    Cause("path-slow-down", ("path-slow",), Faults(slow_percent=20)),
    # Its queue holds 2 ms, which the device's own time for a ping may hide; that of `--maker routed` holds 30 ms.
    Cause("path-slow-up", ("path-slow", "unexplained"), Faults(slow_percent=20), Direction.IN),
    Cause("mss-small", ("mss-small",), mss=500),
    Cause("queue-long", _HEALTHY, queue_ms=200),
)


@dataclass(frozen=True)
class Measured:
    """The result of a test: its first finding, its rate, its whole document, and what it cost the browser."""

    finding: str
    mbit_s: float | None
    document: dict[str, Any]
    browser_cpu_s: dict[str, float] = field(default_factory=dict[str, float])

    @classmethod
    def of(cls, document: dict[str, Any], direction: Direction) -> "Measured":
        """Return the result that a document has."""
        findings = document.get("why") or []
        rate = document["measured"]["total" if direction is Direction.DUPLEX else direction.value] or {}
        return cls(findings[0]["code"] if findings else "-", rate.get("mbit_s"), document)


_NOT_MADE: Final = Measured("-", None, {})


def linkgauge(*arguments: str) -> list[str]:
    """Return the command line of linkgauge."""
    return [sys.executable, "-m", "linkgauge", *arguments]


@contextlib.contextmanager
def link_of(cause: Cause, maker: str) -> Generator[MadeLink]:
    """Build the link of a cause."""
    if cause.policed_mbit_s and maker == "lab":
        maker = "wire-on"
    policed = cause.policed_mbit_s * 1_000_000 or None
    case = Case(
        0, cause.name, cause.wanted, cause.preset, cause.faults, maker=maker, queue_ms=cause.queue_ms,
        policed_bit_s=policed, bucket_bytes=_BUCKET if policed else 0,
        line_rate_bit_s=cause.line_rate_mbit_s * 1_000_000 or None,
    )  # fmt: skip
    with open_link(case) as link:
        for end, values in ((End.NEAR, cause.near_sysctls), (End.FAR, cause.far_sysctls)):
            for value in values:
                link.run_at(end, "sysctl", "-qw", f"net.ipv4.{value}")
        if cause.mss:
            via = () if link.gateway is None else ("via", link.gateway)
            link.run_at(
                End.FAR, "ip", "route", "replace", f"{NEAR_ADDRESS}/32", *via, "dev", link.device_of(End.FAR),
                "advmss", str(cause.mss),
            )  # fmt: skip
        yield link


@contextlib.contextmanager
def served_page(link: MadeLink, folder: Path) -> Generator[str]:
    """Start an endpoint with the page at the near end; yield the page's address."""
    address = f"{NEAR_ADDRESS}:{_PORT}"
    options = ("--bind", NEAR_ADDRESS, "--port", "0", "--open", "--http", address)
    endpoint = subprocess.Popen(
        link.command_at(End.NEAR, linkgauge("endpoint", *options)),
        stdout=subprocess.PIPE,
        stderr=(folder / "endpoint.log").open("w"),
        text=True,
        env={**os.environ, "LINKGAUGE_DATA_DIR": str(folder / "data")},
    )
    try:
        assert endpoint.stdout is not None
        for line in endpoint.stdout:
            if line.startswith("page for browsers"):
                break
        yield f"http://{address}/"
    finally:
        endpoint.terminate()
        endpoint.wait(_DEADLINE_S)
        log = (folder / "endpoint.log").read_text(encoding="utf-8")
        if "Traceback" in log:
            print(log, flush=True)


def measure_in_browser(link: MadeLink, cause: Cause, folder: Path, options: argparse.Namespace) -> Measured:
    """Return the result of a browser at the far end."""
    driver = [sys.executable, str(Path(__file__).with_name("browser_driver.py"))]
    slow = ["--slow"] if cause.is_receiver_slow else []
    with served_page(link, folder) as url:
        test = [url, str(folder), _WAYS[cause.direction], str(options.sessions), str(options.seconds), cause.preset]
        command = link.command_at(End.FAR, [*driver, *test, *slow])
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    run_id, _, spent = done.stdout.strip().partition(" ")
    command = linkgauge("runs", "show", run_id, "--json")
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(folder / "data")}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return replace(Measured.of(json.loads(shown.stdout), cause.direction), browser_cpu_s=json.loads(spent))


def measure_natively(link: MadeLink, cause: Cause, folder: Path, options: argparse.Namespace) -> Measured:
    """Return the result of linkgauge at both ends; an empty one if the cause is the page's own."""
    if cause.is_receiver_slow:
        return _NOT_MADE
    command = linkgauge(
        "check", cause.preset, f"{FAR_ADDRESS}:{link.peer.port}", "--direction", cause.direction.value,
        "-P", str(options.sessions), "--seconds", str(options.seconds), "--max-rise", "5000ms", "--json",
    )  # fmt: skip
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(folder / "data")}
    done = subprocess.run(
        link.command_at(End.NEAR, command), capture_output=True, text=True, check=False, env=environment
    )
    if not done.stdout:
        return Measured(done.stderr.strip()[-60:], None, {})
    return Measured.of(json.loads(done.stdout), cause.direction)


def _text(mbit_s: float | None) -> str:
    return "-" if mbit_s is None else f"{mbit_s:.2f}"


def main() -> None:
    """Try every cause."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=1)
    parser.add_argument("--only", help="causes by name, with commas between")
    parser.add_argument("--maker", default="lab", choices=[each for each in MAKERS if each not in _PLAIN])
    parser.add_argument("--sessions", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="a folder for the documents of all tests")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("the namespaces of a link are entered as root")
    only = None if options.only is None else options.only.split(",")
    right = same = tried = compared = 0
    print(f"{'cause':<16} {'browser':<22} {'linkgauge':<22} {'Mb/s':>8} {'Mb/s':>8}")
    for cause in CAUSES:
        if cause.needs_small_packets and options.maker not in _SMALL_PACKETS:
            continue
        for number in range(options.tries if only is None or cause.name in only else 0):
            with tempfile.TemporaryDirectory() as name, link_of(cause, options.maker) as link:
                found = measure_in_browser(link, cause, Path(name), options)
                native = measure_natively(link, cause, Path(name), options)
            tried, right = tried + 1, right + (found.finding in cause.wanted)
            compared, same = compared + (native is not _NOT_MADE), same + (found.finding == native.finding)
            mark = "" if found.finding in cause.wanted else "!"
            rates = f"{_text(found.mbit_s):>8} {_text(native.mbit_s):>8}"
            print(f"{cause.name:<16} {found.finding + mark:<22} {native.finding:<22} {rates}", flush=True)
            if options.keep is not None:
                for kind, measured in (("browser", found), ("linkgauge", native)):
                    path = options.keep / f"{cause.name}-{number}-{kind}.json"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json.dumps(measured.document, indent=1))
    print(f"{right} of {tried} right, {same} of {compared} the same; load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
