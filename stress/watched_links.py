"""Links of a watching host to its peers: network namespaces, each link shaped, its rate changed while it is in use.

The process that opens them moves into the watching host's namespace. All ends with the processes in them; nothing
of the machine's own network is touched.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import contextlib
import json
import subprocess
import sys
from collections.abc import Generator
from dataclasses import replace
from typing import Final

from linkgauge.engine.lab.devices import configure_device, create_veth_pair, qdisc_arguments, run_tool
from linkgauge.engine.lab.namespaces import NetworkNamespace, create_privileged_namespace
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import NO_FAULTS, plan_lab_link

PRESET: Final = "100mb-fd"
_PREFIX_BITS: Final = 24
_FAR_DEVICE: Final = "eth0"
_DEADLINE_S: Final = 20.0


class WatchedLinks:
    """Some peers by name, an endpoint at each, and a link of PRESET to each."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._link = plan_lab_link(load_catalog().find(PRESET), NO_FAULTS)
        self._numbers = {name: number for number, name in enumerate(names, 1)}
        self._endpoints: list[subprocess.Popen[str]] = []
        fars = [create_privileged_namespace(), *(NetworkNamespace.create() for _ in names[1:])]
        self._near = NetworkNamespace.create()
        run_tool("ip", "link", "set", "lo", "up")
        for name, far in zip(names, fars, strict=True):
            near_address, far_address = (f"198.18.{self._numbers[name]}.{host}" for host in (1, 2))
            create_veth_pair(name, _FAR_DEVICE, far)
            configure_device(name, near_address, self._link.mtu_bytes, self._link, _PREFIX_BITS)
            with far.enter():
                run_tool("ip", "link", "set", "lo", "up")
                configure_device(_FAR_DEVICE, far_address, self._link.mtu_bytes, self._link, _PREFIX_BITS)
                self._endpoints.append(_start_endpoint(far_address))

    def address(self, name: str) -> str:
        """Return where a peer's endpoint listens."""
        return f"198.18.{self._numbers[name]}.2"

    def set_share(self, name: str, share: float) -> None:
        """Give the link to a peer this share of its rate, for what the watching host sends."""
        link = replace(self._link, rate_bit_s=round(share * self._link.rate_bit_s))
        run_tool("tc", "qdisc", "change", "dev", name, "root", *qdisc_arguments(link))

    def close(self) -> None:
        """End the endpoints; the namespaces end with this process."""
        for endpoint in self._endpoints:
            endpoint.terminate()
        for endpoint in self._endpoints:
            endpoint.communicate(timeout=_DEADLINE_S)


def _start_endpoint(address: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", "-m", "linkgauge", "endpoint", "--bind", address, "--open", "--json"]
    endpoint = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert endpoint.stdout is not None
    json.loads(endpoint.stdout.readline())  # it listens once it says where
    return endpoint


@contextlib.contextmanager
def open_links(names: tuple[str, ...]) -> Generator[WatchedLinks]:
    """Build the links, yield them, and end what runs at their far ends."""
    links = WatchedLinks(names)
    try:
        yield links
    finally:
        links.close()
