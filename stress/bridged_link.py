"""A link with a bridge and a router between its ends, of network namespaces alone: no relay carries its frames.

near == bridge == router == far: the router shapes both ways to 100 Mb/s, drops packets by chance, or polices. Its
queue is tbf or htb. There is no delay: netem is not in every kernel.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import os
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

from linkgauge.engine.lab.link_spec import FAR_ADDRESS, NEAR_ADDRESS
from linkgauge.presets.lab_link import Faults

_LINE_MBIT_S = 100
_NEAR_GATEWAY, _FAR_GATEWAY = "10.213.1.2", "10.213.2.2"
NEAR_IPV6, FAR_IPV6 = "fd00:7::1", "fd00:7::2"
_NEAR_GATEWAY6, _FAR_GATEWAY6 = "fd00:7::f1", "fd00:7::f2"
_TIMEOUT_S = 30


@contextmanager
def bridged_link(faults: Faults, policed_mbit_s: int, bucket_bytes: int, queue: str) -> Generator[tuple[str, str]]:
    """Build the link, yield the names of both ends' namespaces, and remove all of them.

    The addresses of the ends are those of a lab. Raises subprocess.CalledProcessError if a command fails.
    """
    near, bridge, router, far = names = [f"lgbr{os.getpid()}{place}" for place in ("n", "b", "r", "f")]
    with ExitStack() as stack:
        for name in names:
            _run("ip", "netns", "add", name)
            stack.callback(_run, "ip", "netns", "del", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        for (one, device), (other, other_device) in (
            ((near, "n0"), (bridge, "b0")),
            ((bridge, "b1"), (router, "r0")),
            ((router, "r1"), (far, "f0")),
        ):
            pair = ("type", "veth", "peer", "name", other_device, "netns", other)
            _run("ip", "link", "add", device, "netns", one, *pair)
            _run("ip", "-n", one, "link", "set", device, "up")
            _run("ip", "-n", other, "link", "set", other_device, "up")
        _run("ip", "-n", bridge, "link", "add", "br0", "up", "type", "bridge")
        for device in ("b0", "b1"):
            _run("ip", "-n", bridge, "link", "set", device, "master", "br0")
        for name, device, ways in (
            (near, "n0", ((NEAR_ADDRESS, _NEAR_GATEWAY, FAR_ADDRESS), (NEAR_IPV6, _NEAR_GATEWAY6, FAR_IPV6))),
            (far, "f0", ((FAR_ADDRESS, _FAR_GATEWAY, NEAR_ADDRESS), (FAR_IPV6, _FAR_GATEWAY6, NEAR_IPV6))),
        ):
            for address, gateway, there in ways:
                _add_address(name, device, address)
                _run("ip", "-n", name, "route", "add", gateway, "dev", device)
                _run("ip", "-n", name, "route", "add", there, "via", gateway, "dev", device)
        _route(router, faults, policed_mbit_s, bucket_bytes, queue)
        yield near, far


def _route(router: str, faults: Faults, policed_mbit_s: int, bucket_bytes: int, queue: str) -> None:
    """Have the router forward, shape, drop and police."""
    for device, ways in (
        ("r0", ((_NEAR_GATEWAY, NEAR_ADDRESS), (_NEAR_GATEWAY6, NEAR_IPV6))),
        ("r1", ((_FAR_GATEWAY, FAR_ADDRESS), (_FAR_GATEWAY6, FAR_IPV6))),
    ):
        for gateway, end in ways:
            _add_address(router, device, gateway)
            _run("ip", "-n", router, "route", "add", end, "dev", device)
        rate = f"{_LINE_MBIT_S * (1 - faults.slow_percent / 100):g}mbit"
        root = ("qdisc", "add", "dev", device, "root")
        if queue == "tbf":
            _run("tc", "-n", router, *root, "tbf", "rate", rate, "burst", "32k", "latency", "30ms")
        else:
            _run("tc", "-n", router, *root, "handle", "1:", "htb", "default", "1")
            _run("tc", "-n", router, "class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb",
                 "rate", rate, "burst", "32k")  # fmt: skip
            _run("tc", "-n", router, "qdisc", "add", "dev", device, "parent", "1:1", "bfifo", "limit", "375k")
    inside = ("ip", "netns", "exec", router)
    _run(*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
    rules: list[str] = []
    if faults.loss_percent:
        rules.append(f"numgen random mod 10000 < {round(100 * faults.loss_percent)} drop")
    if policed_mbit_s:
        rules.append(
            f"oifname r1 limit rate over {policed_mbit_s * 125} kbytes/second burst {bucket_bytes} bytes drop"
        )
    if rules:
        _run(*inside, "nft", "add table inet t; add chain inet t f { type filter hook forward priority 0; }")
        for rule in rules:
            _run(*inside, "nft", f"add rule inet t f {rule}")


def _add_address(name: str, device: str, address: str) -> None:
    """Add the address of one host alone, without a wait for others that might have it."""
    nodad = ("nodad",) if ":" in address else ()
    _run("ip", "-n", name, "addr", "add", f"{address}/{128 if nodad else 32}", "dev", device, *nodad)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, timeout=_TIMEOUT_S)
