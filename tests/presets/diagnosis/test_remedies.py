"""Remedies: commands for the operating system of the end."""

import re
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.host_info import HostInfo, NicInfo, TcpSysctls
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.protocol.peer_validation import replace_impossible_names
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import EndEvidence, Evidence
from linkgauge.presets.diagnosis.remedies import (
    enable_offloads,
    enlarge_receive_ring,
    lengthen_send_queue,
    negotiate,
    round_window,
    set_mtu,
    show_nic,
    show_nic_errors,
    show_queue,
    spread_packets,
)
from linkgauge.presets.diagnosis.trial import Trial

from .evidence_cases import NIC, end, first, run


@pytest.mark.parametrize(
    ("system", "remedy"),
    [
        ("Darwin 23.1.0", "at the remote end: sysctl -w net.inet.tcp.autorcvbufmax=4194304"),
        ("FreeBSD 14.0", "at the remote end: sysctl -w net.inet.tcp.recvbuf_max=4194304"),
        ("AIX 7", "at the remote end: let TCP grow its buffers to 4\u00a0194\u00a0304 bytes (4\u00a0096 KB)"),
    ],
)
def test_a_remedy_is_a_command_of_the_ends_own_system(system: str, remedy: str) -> None:
    """A remedy never names a command that does not exist there."""
    evidence = run(150, rwnd_limited=0.8, min_rtt_us=10_000, rtt_us=10_500, peer_window_bytes=220_000)
    small = replace(evidence.far, system=system, tcp=TcpSysctls(tcp_rmem_max_bytes=262_144))
    assert first(replace(evidence, far=small)).remedy == remedy


@pytest.mark.parametrize(
    ("needed_bytes", "size_bytes", "text"),
    [(1, 65_536, "64K"), (43_690, 65_536, "64K"), (43_691, 131_072, "128K"), (1_000_000, 2_097_152, "2M")],
)
def test_a_suggested_window_is_a_power_of_two_with_room_to_spare(
    needed_bytes: int, size_bytes: int, text: str
) -> None:
    """It is written as the command line takes it."""
    assert round_window(needed_bytes) == size_bytes
    assert str(Trial(window_bytes=size_bytes)) == f"--window {text}"


def test_an_interface_is_set_with_the_tools_of_its_system() -> None:
    """Linux alone has ethtool and ip."""
    linux = end(End.FAR)
    mac = replace(linux, system="Darwin 23.1.0")
    assert set_mtu(linux, 1_500) == "at the remote end: ip link set eth0 mtu 1500"
    assert set_mtu(mac, 1_500) == "at the remote end: ifconfig eth0 mtu 1500"
    assert show_nic(linux) == "at the remote end: ethtool eth0"
    assert show_nic_errors(mac) == show_queue(mac) == show_nic(mac) == "at the remote end: ifconfig eth0"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("window-below-bdp", "--window 512K"),
        ("window-clamped", "at the local end: sysctl -w net.ipv4.tcp_rmem='4096 131072 1048576'"),
        ("window-scaling-off", "at the local end: sysctl -w net.ipv4.tcp_window_scaling=1"),
        ("loss", "ip -s -s link show"),
        ("path-slow", "tc -s qdisc show dev near0"),
        ("mtu-mismatch", "at the remote end: ip link set far0 mtu 1500"),
        ("core-saturated", "ps -eo pid,psr,pcpu,comm"),
        ("offloads-off", "at the local end: ethtool -K near0 tso on gso on gro on"),
    ],
)
def test_the_remedy_of_a_recorded_run_undoes_the_fault_of_its_link(name: str, remedy: str) -> None:
    """The command reverses the change of the link."""
    scenario = tomllib.loads((Path(__file__).parent / "scenarios" / f"{name}.toml").read_text(encoding="utf-8"))
    assert remedy in first(decode(Evidence, scenario["evidence"])).remedy


NIC_COMMANDS = (
    *(
        enable_offloads,
        enlarge_receive_ring,
        lengthen_send_queue,
        negotiate,
        show_nic,
        show_nic_errors,
        show_queue,
        spread_packets,
    ),
    lambda end: set_mtu(end, 1_500),
)


@example(name="')", qdisc="", system="Linux 6.12")
@given(
    name=st.text(max_size=20),
    qdisc=st.text(max_size=40) | st.sampled_from(["fq_codel", "x); id; (", "pfifo_fast"]),
    system=st.sampled_from(["Linux 6.12", "Darwin 23.1.0", "FreeBSD 14.0", "AIX 7"]),
)
def test_any_interface_name_is_one_word_of_a_command(name: str, qdisc: str, system: str) -> None:
    """The user may paste the command into a root shell, and it has no other word from that end."""
    sent = HostInfo("x", system, 1, "x", "x", replace(NIC, name=name, qdisc=qdisc))
    host = replace_impossible_names(decode(HostInfo, encode(sent)))
    assert host.nic is not None
    for build in NIC_COMMANDS:
        far = replace(end(End.FAR, nic=host.nic), system=system)
        odd, plain = build(far), build(_with_name(far, "NAME"))
        assert shlex.split(odd) == [word.replace("NAME", host.nic.name) for word in shlex.split(plain)]
        unquoted = re.sub(r"'[^']*'| \([\w.-]+\)", "", odd.replace("'\"'\"'", ""))  # without quoted apostrophes
        assert not set("();`$") & set(unquoted)


def _with_name(end: EndEvidence, name: str) -> EndEvidence:
    return replace(end, nic=replace(end.nic or NicInfo(name, "device"), name=name))


@pytest.mark.parametrize("path", sorted((Path(__file__).parent / "scenarios").glob("*.toml")), ids=lambda p: p.stem)
def test_no_remedy_of_a_run_has_the_name_of_an_interface_unquoted(path: Path) -> None:
    """Even in a run log from before names were checked."""
    name = "eth0; curl x | sh"
    evidence = decode(Evidence, tomllib.loads(path.read_text(encoding="utf-8"))["evidence"])
    evil = replace(evidence, near=_with_name(evidence.near, name), far=_with_name(evidence.far, name))
    for finding in diagnose(evil):
        assert name not in finding.remedy.replace(shlex.quote(name), "")
