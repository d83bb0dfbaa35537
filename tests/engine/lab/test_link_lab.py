"""Labs for real: built, used, and gone without a trace, however they end."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from linkgauge.engine.lab.link_lab import Lab, find_orphans, open_lab, terminate_orphans
from linkgauge.engine.model.errors import LabError

from ..child_processes import children_of
from .labs import DEADLINE_S, LINK, RELAYED, LabProcess, near, network_of


def test_a_lab_has_a_near_end_with_addresses_and_nothing_else(lab: Lab) -> None:
    """Its own loopback and one end of the link."""
    output = near(lab, "ip", "-brief", "-4", "address")
    assert [line.split()[0].partition("@")[0] for line in output.splitlines()] == ["lo", "near0"]
    assert "198.18.0.1/30" in output


def test_the_near_end_has_its_mtu_its_queue_and_no_offloads(lab: Lab) -> None:
    """As the link says; one packet at a time."""
    output = near(lab, "ip", "-details", "link", "show", "near0")
    assert " mtu 1500 " in output
    assert " gso_max_segs 1 " in output
    queue = near(lab, "tc", "qdisc", "show", "dev", "near0")
    assert "rate 100Mbit" in queue
    assert "overhead 24" in queue


def test_the_far_end_is_another_namespace_with_its_own_mtu(lab: Lab) -> None:
    """Where the endpoint runs."""
    networks = {network_of(child) for child in children_of(lab.keeper_pid)}
    assert network_of(lab.keeper_pid) not in networks
    assert len(networks) == 1
    done = near(lab, "cat", "/proc/net/tcp")
    assert done.count("\n") == 1  # only its header: nothing listens at the near end


def test_the_far_end_answers(lab: Lab) -> None:
    """The endpoint is there when the lab is."""
    code = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close(); print('yes')"
    assert near(lab, sys.executable, "-c", code, lab.peer.host, str(lab.peer.port)) == "yes\n"


def test_connections_use_cubic_whatever_the_machine_uses(lab: Lab) -> None:
    """By the namespace's own setting, or by the route."""
    code = (
        "import socket, sys; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); "
        "print(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(bytes(1)).decode())"
    )
    assert near(lab, sys.executable, "-c", code, lab.peer.host, str(lab.peer.port)) == "cubic\n"


def test_sessions_outlast_a_queue_that_others_keep_full(lab: Lab) -> None:
    """Each packet that finds the queue full is a try of TCP, at both ends: 15 of them pass in 8 s."""
    retries = "/proc/sys/net/ipv4/tcp_retries2"
    here = Path(retries).read_text(encoding="ascii")
    assert near(lab, "cat", retries) == "255\n"
    far = f"--net=/proc/{children_of(lab.keeper_pid)[0]}/ns/net"
    assert (
        subprocess.run(["/usr/bin/env", "nsenter", far, "cat", retries], stdout=subprocess.PIPE, check=True).stdout
        == b"255\n"
    )
    assert Path(retries).read_text(encoding="ascii") == here


def test_this_process_stays_where_it_is(lab: Lab) -> None:
    """Only commands for the lab run there."""
    assert network_of(os.getpid()) == network_of(os.getppid())
    assert network_of(lab.keeper_pid) != network_of(os.getpid())


@pytest.mark.usefixtures("lab")
def test_a_relayed_link_takes_its_delay_each_way() -> None:
    """A connection is a round trip; TCP_INFO shows it without this machine's load."""
    code = (
        "import socket, sys, struct; s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 5); "
        "print(struct.unpack_from('=I', s.getsockopt(6, socket.TCP_INFO, 104), 68)[0])"
    )
    try:
        with open_lab(RELAYED) as built:
            round_trip_us = int(near(built, sys.executable, "-c", code, built.peer.host, str(built.peer.port)))
    except LabError as error:
        if "/dev/net/tun" in str(error):
            pytest.skip(str(error))
        raise
    assert round_trip_us >= 40_000


@pytest.mark.usefixtures("lab")
def test_a_user_without_rights_has_labs_where_users_may_have_namespaces() -> None:
    """Root in its own user namespace: everything works there, and nothing reaches outside."""
    code = textwrap.dedent(f"""
        import sys
        from linkgauge.engine.lab.link_lab import open_lab
        from linkgauge.engine.lab.link_spec import LabLink
        from linkgauge.engine.model.errors import LabUnavailable
        try:
            with open_lab({LINK!r}) as lab:
                sys.exit(lab.run(["sh", "-c", "readlink /proc/self/ns/user; ip -brief link show near0"]))
        except LabUnavailable as error:
            print(error, file=sys.stderr)
            sys.exit(77)
    """)
    powerless = ["setpriv", "--bounding-set", "-sys_admin", "--"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*powerless, sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    if done.returncode == 77:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    user, device = done.stdout.splitlines()
    assert user != str(Path("/proc/self/ns/user").readlink())
    assert device.startswith("near0")


@pytest.mark.every
@pytest.mark.usefixtures("lab")
def test_a_lab_is_gone_after_ctrl_c() -> None:
    """The terminal signals the command and the lab's process, and not the keeper."""
    held = LabProcess()
    os.killpg(held.process.pid, signal.SIGINT)
    held.check_gone()
    assert held.process.returncode == 128 + signal.SIGINT


@pytest.mark.every
@pytest.mark.usefixtures("lab")
def test_processes_that_outlive_lab_and_keeper_are_found_and_ended() -> None:
    """A daemon that the user started in the lab's shell; a lab that is up is left alone."""
    held = LabProcess("setsid sh -c 'trap \"\" HUP; echo up; exec sleep 600' < /dev/null & exec sleep 600")
    assert not held.parts & set(find_orphans())
    held.kill_keeper()
    held.process.kill()
    held.process.wait(DEADLINE_S)
    assert set(terminate_orphans()) <= held.parts
    held.check_gone()
