"""The makers of links: each builds the link of a case in its own way, and gives both of its ends.

`lab` is the product's own: queues of the ends' kernels and a relay behind them. The wires have a process between
the ends that reads frames, and no queue of a kernel: `wire-on` with the offloads of the devices, `wire-off` without
them, `wire-gso1` if TCP passes single packets. `router` has a router with tbf or htb at both of its devices,
`routed` a wire with the delay behind such a router. `one-host` has both ends in one namespace, as loopback has.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import json
import select
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from link_keeper import ROUTER_ADDRESS, LinkRequest, Offloads
from linkgauge.engine.lab.devices import FAR_DEVICE, NEAR_DEVICE
from linkgauge.engine.lab.kept_lab import command_beside, lab_environment
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.lab.link_spec import FAR_ADDRESS, NEAR_ADDRESS, LabLink
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.errors import LabError, LabUnavailable
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.serialization import encode
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import plan_lab_link
from wire_relay import Wire

if TYPE_CHECKING:
    from grid_cases import Case

_WIRES: Final[dict[str, Offloads]] = {"wire-on": "on", "wire-off": "off", "wire-gso1": "gso1"}
_ROUTERS: Final = ("router", "routed")
MAKERS: Final = ("lab", *_WIRES, *_ROUTERS, "one-host")
_BUILD_DEADLINE_S: Final = 30.0
_END_DEADLINE_S: Final = 10.0
_MS_NS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class MadeLink:
    """A link that is up: a process in the namespace of each end, and the endpoint at the far one."""

    peer: Peer
    near_pid: int
    far_pid: int
    gateway: str | None = None

    def pid_of(self, end: End) -> int:
        """Return a process in the namespace of an end."""
        return self.near_pid if end is End.NEAR else self.far_pid

    def command_at(self, end: End, command: list[str]) -> list[str]:
        """Return a command line that runs a command at an end."""
        return command_beside(self.pid_of(end), command)

    def run_at(self, end: End, *command: str) -> None:
        """Run a command at an end."""
        inside = ["nsenter", f"--net=/proc/{self.pid_of(end)}/ns/net", *command]
        subprocess.run(inside, check=True, capture_output=True)

    def device_of(self, end: End) -> str:
        """Return the name of an end's device."""
        return NEAR_DEVICE if end is End.NEAR else FAR_DEVICE

    def limit_window(self, end: End, window_bytes: int) -> None:
        """Have the route of an end to the other one limit the window that the end announces."""
        other = FAR_ADDRESS if end is End.NEAR else NEAR_ADDRESS
        via = () if self.gateway is None else ("via", self.gateway)
        device = ("dev", self.device_of(end))
        self.run_at(end, "ip", "route", "replace", f"{other}/32", *via, *device, "window", str(window_bytes))


def plan_link(case: "Case") -> LabLink:
    """Return the link of a case. Other makers than a lab can delay any rate."""
    preset = load_catalog().find(case.preset)
    spec = preset.link
    line, mtu = case.line_rate_bit_s or spec.line_rate_bit_s, case.mtu_bytes or spec.mtu_bytes
    preset = replace(preset, link=replace(spec, line_rate_bit_s=line, mtu_bytes=mtu))
    faults = case.faults
    if case.maker == "lab":
        link = plan_lab_link(preset, faults)
    else:
        link = plan_lab_link(preset, replace(faults, delay_ms=0.0, loss_percent=0.0))
        delay_ns = round(faults.delay_ms * _MS_NS)
        link = replace(
            link,
            delay_ns=delay_ns,
            loss_percent=faults.loss_percent,
            seed=faults.seed,
            buffer_bytes=link.buffer_bytes + round(2 * delay_ns * link.rate_bit_s / 8e9),
        )
    if case.queue_ms is not None:
        room = round(case.queue_ms * link.rate_bit_s / 8e3)
        link = replace(link, buffer_bytes=max(room, 4 * link.mtu_bytes))
    return link


@contextmanager
def open_link(case: "Case") -> Generator[MadeLink]:
    """Make a case's link, yield it, and take it down. Raises LabUnavailable if this machine cannot make it."""
    link = plan_link(case)
    if case.maker == "lab":
        with open_lab(link) as lab:
            yield MadeLink(lab.peer, lab.keeper_pid, _endpoint_pid(lab.keeper_pid))
        return
    wire = Wire(link, case.policed_bit_s, case.bucket_bytes)
    if case.maker in _ROUTERS:
        wire = replace(wire, link=replace(link, grain="batch" if case.has_offloads else "packet"))
        offloads = "on" if case.has_offloads else "off"
        request = LinkRequest(wire, offloads, case.queue, has_long_wire=case.maker == "routed")
    else:
        is_one_host = case.maker == "one-host"
        request = LinkRequest(wire, "on" if is_one_host else _WIRES[case.maker], is_one_host=is_one_host)
    with _keeper(request) as (pid, port):
        gateway = None if request.queue is None else ROUTER_ADDRESS
        yield MadeLink(Peer(FAR_ADDRESS, port), pid, _endpoint_pid(pid), gateway)


@contextmanager
def _keeper(request: LinkRequest) -> Generator[tuple[int, int]]:
    """Start a keeper, and yield its process and the endpoint's port. Everything ends with its standard input."""
    keeper = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("link_keeper.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=lab_environment(has_offloads_off=request.offloads == "off"),
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        keeper.stdin.write(json.dumps(encode(request)) + "\n")
        keeper.stdin.flush()
        readable, _, _ = select.select([keeper.stdout], [], [], _BUILD_DEADLINE_S)
        answer = json.loads(keeper.stdout.readline() or "{}") if readable else {}
        if "port" not in answer:
            kind = LabUnavailable if answer.get("unavailable") else LabError
            raise kind(answer.get("error", "the link's keeper did not answer"))
        yield keeper.pid, answer["port"]
    finally:
        keeper.stdin.close()
        keeper.stdout.close()
        try:
            keeper.wait(_END_DEADLINE_S)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()


def _endpoint_pid(keeper_pid: int) -> int:
    """Return a process of the far namespace: the endpoint, a child of the keeper."""
    children = Path(f"/proc/{keeper_pid}/task/{keeper_pid}/children").read_text(encoding="ascii").split()
    for child in children:
        if b"engine.far.loopback" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise SystemExit("the link's endpoint is not there")
