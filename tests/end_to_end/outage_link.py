"""A link of 10 Mb/s between two network namespaces, whose far end or whose ways can go away."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from .namespaces import DEADLINE_S, Namespaces, run_within
from .outage_cases import OutageCase

NEAR, FAR = "192.0.2.1", "192.0.2.2"
_MACS: Final = {"near0": "02:00:00:00:00:01", "far0": "02:00:00:00:00:02"}
_NOWHERE: Final = "02:00:00:00:00:99"
_PORT: Final = 5_820
_IPERF3_PORT: Final = 5_201
_RATE: Final = ["rate", "10mbit", "burst", "4kb", "latency", "60ms", "overhead", "24", "linklayer", "ethernet"]


class OutageLink:
    """Two namespaces with a shaped link, and an endpoint at its far end. Call `close` at the end."""

    def __init__(self) -> None:
        self._namespaces = Namespaces(2)
        near, far = self._namespaces.entries
        self._within = {"near0": near, "far0": far}
        link = ("ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0", "netns")
        run_within(near, *link, self._namespaces.pids[1])
        for name, address in (("near0", NEAR), ("far0", FAR)):
            within = self._within[name]
            run_within(within, "ip", "link", "set", name, "address", _MACS[name])
            run_within(within, "ip", "addr", "add", f"{address}/24", "dev", name)
            # A host whose default is another keeps cubic from namespaces; reno is always allowed.
            choose = "sysctl -qw $0=cubic || sysctl -qw $0=reno"
            run_within(within, "sh", "-c", choose, "net.ipv4.tcp_congestion_control")
            for up in ("lo", name):
                run_within(within, "ip", "link", "set", up, "up")
            run_within(within, "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off")
            run_within(within, "tc", "qdisc", "add", "dev", name, "root", "tbf", *_RATE)
        for command in self._restoring():
            subprocess.run(command, check=True, timeout=DEADLINE_S)
        self._endpoint = subprocess.Popen(
            [*far, sys.executable, "-P", "-m", "linkgauge", "endpoint", "--open", "--bind", FAR],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._endpoint.stdout is not None
        assert b"listening" in self._endpoint.stdout.readline()
        self._near_end = subprocess.Popen(
            [*near, sys.executable, "-P", str(Path(__file__).with_name("outage_near_end.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End everything."""
        self._near_end.communicate(timeout=DEADLINE_S)
        self._endpoint.terminate()
        self._endpoint.communicate(timeout=DEADLINE_S)
        self._namespaces.close()

    def carry_out(self, case: OutageCase) -> dict[str, Any]:
        """Return the result of a test with its outage (outage_near_end.py)."""
        server = [*self._within["far0"], shutil.which("iperf3") or "", "-s", "-1", "--forceflush"]
        request = {
            "host": FAR,
            "port": _IPERF3_PORT if case.is_iperf3 else _PORT,
            "server": server if case.is_iperf3 else None,
            "pids": [self._endpoint.pid],
            "workload": case.workload,
            "direction": case.direction,
            "seconds": 5,
            "kind": case.kind,
            "start_s": case.start_s,
            "length_s": case.length_s,
            "begin": list(self._breaking(case.kind)),
            "end": list(self._restoring()),
        }
        assert self._near_end.stdin is not None
        assert self._near_end.stdout is not None
        self._near_end.stdin.write(json.dumps(request) + "\n")
        self._near_end.stdin.flush()
        return json.loads(self._near_end.stdout.readline())

    def carry_out_all(self, cases: Iterable[OutageCase]) -> Iterator[tuple[OutageCase, dict[str, Any]]]:
        """Carry some cases out, one after the other."""
        for case in cases:
            yield case, self.carry_out(case)

    def _breaking(self, kind: str) -> Iterator[list[str]]:
        if kind == "link down":
            yield [*self._within["far0"], "ip", "link", "set", "far0", "down"]
        elif kind == "no way there":
            yield self._neighbour("near0", FAR, _NOWHERE)
        elif kind == "no way back":
            yield self._neighbour("far0", NEAR, _NOWHERE)

    def _restoring(self) -> Iterator[list[str]]:
        yield [*self._within["far0"], "ip", "link", "set", "far0", "up"]
        yield self._neighbour("near0", FAR, _MACS["far0"])
        yield self._neighbour("far0", NEAR, _MACS["near0"])

    def _neighbour(self, device: str, address: str, mac: str) -> list[str]:
        """Return the command that has packets for an address go to a MAC, whose owner alone receives them."""
        neighbour = ["ip", "neigh", "replace", address, "lladdr", mac, "dev", device, "nud", "permanent"]
        return [*self._within[device], *neighbour]
