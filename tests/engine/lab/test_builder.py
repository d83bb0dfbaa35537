"""Labs for real: built, used, and gone without a trace, however they end."""

import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.lab.builder import LAB_OWNER_VARIABLE, Lab, open_lab
from linkgauge.engine.lab.cleanup import find_orphans, terminate_orphans
from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.lab.namespaces import find_processes
from linkgauge.engine.model.errors import LabError, LabUnavailable

from ..child_processes import children_of

LINK = LabLink(100_000_000, 1500, 1400, 24, "ethernet", 16_384, 400_000, smallest_bytes=84)
RELAYED = LabLink(100_000_000, 1500, 1500, 24, "ethernet", 16_384, 400_000, delay_ns=20_000_000)
DEADLINE_S = 20.0


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Give a lab; skip, and say why, where there can be none."""
    try:
        with open_lab(LINK) as built:
            yield built
    except LabUnavailable as error:
        pytest.skip(str(error))


def near(lab: Lab, *command: str) -> str:
    """Return what a command says at a lab's near end."""
    done = subprocess.run(
        lab.near_end_command(command), capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def network_of(pid: int) -> int:
    """Return the network namespace of a process."""
    return Path(f"/proc/{pid}/ns/net").stat().st_ino


def wait_for_end(pids: set[int]) -> None:
    """Wait until processes have ended, whoever's children they are."""
    deadline = time.monotonic() + DEADLINE_S
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        os.close(descriptor)
        assert ended, f"process {pid} is still there: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}"


class InAProcess:
    """A lab of a process of its own, with a command at its near end that goes on until it is ended."""

    def __init__(self, command: str = "echo up; exec sleep 600", link: str = "LINK") -> None:
        # start_new_session: what a test sends to the process group must not reach the test.
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                textwrap.dedent(f"""
                import sys
                from linkgauge.engine.lab.builder import open_lab
                from linkgauge.engine.lab.link_spec import LabLink
                LINK = {LINK!r}
                RELAYED = {RELAYED!r}
                with open_lab({link}) as lab:
                    sys.exit(lab.run(["sh", "-c", {command!r}]))
            """),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "up\n"
        pid = self.process.pid
        marked = [path.parent for path in Path("/proc").glob("[0-9]*/environ") if _is_marked(path, pid)]
        self.parts = {int(folder.name) for folder in marked}
        self.networks = {network_of(each) for each in self.parts} - {network_of(os.getpid())}

    def check_gone(self) -> None:
        """Reap the process; fail where a part of the lab is left."""
        self.process.communicate(timeout=DEADLINE_S)
        wait_for_end(self.parts)
        assert find_processes(self.networks) == []


def _is_marked(environment: Path, pid: int) -> bool:
    try:
        entries = environment.read_bytes().split(b"\0")
    except OSError:
        return False
    return any(
        each.startswith(f"{LAB_OWNER_VARIABLE}=".encode()) and f"/{pid}/".encode() in each for each in entries
    )


def test_a_lab_has_a_near_end_with_addresses_and_nothing_else(lab: Lab) -> None:
    """Its own loopback and one end of the link."""
    said = near(lab, "ip", "-brief", "-4", "address")
    assert [line.split()[0].partition("@")[0] for line in said.splitlines()] == ["lo", "near0"]
    assert "198.18.0.1/30" in said


def test_the_near_end_has_its_mtu_its_queue_and_no_offloads(lab: Lab) -> None:
    """As the link says; one packet at a time."""
    said = near(lab, "ip", "-details", "link", "show", "near0")
    assert " mtu 1500 " in said
    assert " gso_max_segs 1 " in said
    queue = near(lab, "tc", "qdisc", "show", "dev", "near0")
    assert "rate 100Mbit" in queue
    assert "overhead 24" in queue


def test_the_far_end_is_another_namespace_with_its_own_mtu(lab: Lab) -> None:
    """Where the endpoint runs."""
    networks = {network_of(child) for child in children_of(lab.keeper_pid)}
    assert network_of(lab.keeper_pid) not in networks
    assert len(networks) == 1
    done = near(lab, "cat", "/proc/net/tcp")
    assert done.count("\n") == 1  # only its header: nobody listens at the near end


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


def test_this_process_stays_where_it_is(lab: Lab) -> None:
    """Only what is sent there goes there."""
    assert network_of(os.getpid()) == network_of(os.getppid())
    assert network_of(lab.keeper_pid) != network_of(os.getpid())


def test_a_commands_exit_status_is_the_labs(lab: Lab) -> None:
    """So that a check in a lab can be scripted."""
    assert lab.run(["sh", "-c", "exit 7"]) == 7
    assert lab.run(["sh", "-c", "kill -9 $$"]) == 128 + 9


def test_a_command_that_is_not_there_is_told(lab: Lab) -> None:
    """And has the status of a test that could not be run."""
    done = subprocess.run(
        lab.near_end_command(["/nonexistent"]), capture_output=True, text=True, check=False, timeout=9
    )
    assert done.returncode == 3
    assert "/nonexistent cannot be run at the lab's near end" in done.stderr


@pytest.mark.usefixtures("lab")
def test_a_relayed_link_takes_its_delay_each_way() -> None:
    """A connection is a round trip; TCP_INFO tells it without this machine's hurry."""
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
    """Root in a user namespace of its own: everything works there, and nothing reaches outside."""
    code = textwrap.dedent(f"""
        import sys
        from linkgauge.engine.lab.builder import open_lab
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


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_lab_whose_process_is_ended_is_gone(number: signal.Signals) -> None:
    """All of it: the command, the endpoint, the keeper, and with them the namespaces."""
    held = InAProcess()
    assert len(held.parts) >= 3
    assert len(held.networks) == 2
    held.process.send_signal(number)
    held.check_gone()


@pytest.mark.usefixtures("lab")
def test_a_lab_is_gone_after_ctrl_c() -> None:
    """The terminal tells the command and the lab's process; the keeper does not hear it."""
    held = InAProcess()
    os.killpg(held.process.pid, signal.SIGINT)
    held.check_gone()
    assert held.process.returncode == 128 + signal.SIGINT


@pytest.mark.usefixtures("lab")
def test_what_a_shell_left_in_the_background_ends_with_the_lab() -> None:
    """Even where it hears no hangup."""
    held = InAProcess("trap '' HUP; sleep 600 & echo up; read -r _")
    held.check_gone()


@pytest.mark.usefixtures("lab")
def test_a_keeper_that_is_killed_takes_its_parts_with_it() -> None:
    """They see their input end; the command is the person's, and goes on until it ends."""
    held = InAProcess("echo up; read -r _; exit 5")
    keeper = next(pid for pid in held.parts if b"engine.lab.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(keeper, signal.SIGKILL)
    held.check_gone()
    assert held.process.returncode == 5


@pytest.mark.usefixtures("lab")
def test_what_outlived_both_lab_and_keeper_is_found_and_ended() -> None:
    """A daemon that a person started in the lab's shell; a lab that is up is left alone."""
    held = InAProcess("setsid sh -c 'trap \"\" HUP; echo up; exec sleep 600' < /dev/null & exec sleep 600")
    keeper = next(pid for pid in held.parts if b"engine.lab.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes())
    assert not held.parts & set(find_orphans())
    os.kill(keeper, signal.SIGKILL)
    held.process.kill()
    held.process.wait(DEADLINE_S)
    assert set(terminate_orphans()) <= held.parts
    held.check_gone()


@pytest.mark.usefixtures("lab")
def test_a_link_that_the_kernel_refuses_is_told_with_the_command_and_what_it_said() -> None:
    """And with what could help."""
    refused = LabLink(1_000_000, 60, 60, 24, "ethernet", 16_384, 40_000)
    with pytest.raises(LabError, match=r"`ip link set near0 mtu 60` failed: .*; this kernel"), open_lab(refused):
        pass
