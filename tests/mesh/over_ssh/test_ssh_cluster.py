"""A Dask cluster over a real OpenSSH server: its hosts, its lost hosts, and no traces afterwards."""

import asyncio
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import linkgauge
import pytest
from linkgauge import __version__
from linkgauge.engine.model.errors import ClusterError, PlanError
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.ssh.login import SSH_COMMAND_VARIABLE
from linkgauge.mesh.coordinator import open_mesh
from linkgauge.mesh.events import CellEnded, FailureCode, HostLost, MeshEnded
from linkgauge.mesh.over_ssh import host_login
from linkgauge.mesh.over_ssh.ssh_cluster import start_processes, start_ssh_cluster
from linkgauge.mesh.plan import Host, MeshPlan

from ...end_to_end.conftest import Sshd
from ..host_processes import command_of, listening_hosts

SHORT = Plan(duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 10, rate_bit_s=10**7)


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """Give a server that admits the user of the tests, with db-1, db-2 and db-3 in ssh's configuration."""
    folder = tmp_path / "sshd"
    folder.mkdir()
    sshd = Sshd(folder)
    sshd.provide("env", "/usr/bin/env")
    sshd.provide("uname", "/bin/uname")
    sshd.start(address="0.0.0.0", PYTHONPATH=str(Path(linkgauge.__path__[0]).parent))  # noqa: S104
    lines = [f"Host db-{n}\n  HostName 127.0.0.6{n}\n" for n in (1, 2, 3)]
    lines += [f"Host db-* 127.0.0.61\n  Port {sshd.port}\n  User root\n  IdentityFile {folder / 'key'}\n"]
    lines += [f"  UserKnownHostsFile {folder / 'known_hosts'}\n  IdentitiesOnly yes\n  IdentityAgent none\n"]
    configuration(sshd).write_text("".join(lines))
    monkeypatch.setenv(SSH_COMMAND_VARIABLE, f"ssh -F {configuration(sshd)}")
    yield sshd
    sshd.stop()


def configuration(sshd: Sshd) -> Path:
    """Return the file of ssh's configuration."""
    return sshd.folder / "config"


def configure(sshd: Sshd, lines: str) -> None:
    """Put lines before ssh's configuration: its first value counts."""
    configuration(sshd).write_text(f"{lines}\n{configuration(sshd).read_text()}")


async def reasons(names: str = "db-1 db-2 db-3") -> dict[str, str]:
    """Start the processes on hosts; return the reasons of the lost ones."""
    hosts = [Host(name) for name in names.split()]
    async with start_processes(hosts, sys.executable) as (_, _, lost):
        return {each.host: each.failure.detail for each in lost}


def listening_there(sshd: Sshd) -> dict[str, list[str]]:
    """Return the addresses on which the processes of a server's sessions listen, by their program."""
    found: dict[str, list[str]] = {}
    for pid in sshd.processes():
        program = next((name for name in ("dask_process", "host_endpoint") if name in command_of(pid)), "")
        if addresses := listening_hosts(pid):
            found[program] = sorted(found.get(program, []) + addresses)
    return found


async def test_a_mesh_runs_on_hosts_that_ssh_reaches_and_leaves_nothing_there(sshd: Sshd) -> None:
    """A host that does not exist is lost with the reason, and the others go on."""
    hosts = (Host("db-1", "rack-1"), Host("no-such-host.invalid"), Host("db-2", "rack-2"))
    async with start_ssh_cluster(hosts, remote_python=sys.executable) as cluster:
        assert set(cluster.hosts) == {Host("db-1", "rack-1", "127.0.0.61"), Host("db-2", "rack-2", "127.0.0.62")}
        async with open_mesh(MeshPlan("mesh-test", hosts, SHORT), cluster) as mesh:
            listening = listening_there(sshd)
            events = [event async for event in mesh]
    # The scheduler runs beside the first worker. Nothing of Dask serves HTTP: that would have no login.
    assert listening == {
        "dask_process": ["127.0.0.61", "127.0.0.61", "127.0.0.62"],
        "host_endpoint": ["127.0.0.61", "127.0.0.62"],
    }
    (lost,) = [event for event in events if isinstance(event, HostLost)]
    assert (lost.host, lost.failure.code) == ("no-such-host.invalid", FailureCode.UNREACHABLE)
    assert [event.failure for event in events if isinstance(event, CellEnded)] == [None, None]
    assert events[-1] == MeshEnded(is_complete=True)
    sshd.wait_until_gone()


async def test_hosts_without_linkgauge_are_named_with_the_reason(sshd: Sshd) -> None:
    """Here the interpreter does not exist there."""
    hosts = (Host("db-1"), Host("db-2"))
    with pytest.raises(ClusterError, match=r"db-1: /no/python there cannot start: .*found"):
        async with start_ssh_cluster(hosts, remote_python="/no/python"):
            pass
    sshd.wait_until_gone()


async def test_a_name_that_would_be_a_command_of_the_remote_shell_is_refused() -> None:
    """It becomes part of a command line there."""
    with pytest.raises(PlanError, match="ssh knows"):
        async with start_ssh_cluster((Host("db-1"), Host("x';reboot;'"))):
            pass


def command_lines() -> list[bytes]:
    """Return the command lines of all processes."""
    lines: list[bytes] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended since
            lines.append(path.read_bytes())
    return lines


@pytest.mark.every
async def test_strangers_are_refused_and_the_key_is_in_no_command_line(sshd: Sshd) -> None:
    """A scheduler runs any code for its clients. Others on a host can read its command lines."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    hosts = (Host("db-1"), Host("db-2"))
    async with start_processes(hosts, sys.executable) as (scheduler, found, _):
        assert len(found) == 2
        scheme, _, address = scheduler.partition("://")
        host, port = address.split(":")
        assert scheme == "tls"
        for context in (trusting, None):
            reader, writer = await asyncio.open_connection(host, port, ssl=context)
            if context is None:
                writer.write(b"x" * 100)
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                async with asyncio.timeout(10):
                    await reader.readexactly(100)
            writer.close()
        lines = command_lines()
        assert sum(b"linkgauge.mesh.over_ssh.dask_process" in line for line in lines) >= 3
        assert not any(b"PRIVATE KEY" in line or b"INHERIT_CONFIG" in line for line in lines)
    sshd.wait_until_gone()


@pytest.mark.every
async def test_a_second_name_of_a_host_costs_that_name_only_and_its_address_is_named_once(sshd: Sshd) -> None:
    """Each interface takes part once."""
    hosts = (Host("db-1"), Host("db-2"), Host("root@db-1"), Host("127.0.0.61"))
    async with start_processes(hosts, sys.executable) as (_, found, lost):
        assert [host.name for host in found] == ["db-1", "db-2"]
        reasons = [(each.host, each.failure.detail) for each in lost]
    assert reasons == [
        ("root@db-1", "it is the same host as db-1: both have the address 127.0.0.61"),
        ("127.0.0.61", "it is the same host as db-1"),
    ]
    sshd.wait_until_gone()


async def test_a_wrong_line_of_the_ssh_configuration_is_reported(sshd: Sshd) -> None:
    """As the reason why no host can take part."""
    configure(sshd, "Host db-*\n  ConnectTimeout soon")
    with pytest.raises(ClusterError, match=r"db-1: ssh cannot log in to .*invalid time value"):
        await reasons("db-1 db-2")
    sshd.wait_until_gone()


@pytest.mark.every
async def test_a_worker_that_does_not_start_costs_its_own_host_only(sshd: Sshd, tmp_path: Path) -> None:
    """Its login and its Python were good before."""
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\n"
        'case "$* $SSH_CONNECTION" in *dask_process*127.0.0.63*) export DASK_TEMPORARY_DIRECTORY=/proc/no;; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    async with start_ssh_cluster([Host(f"db-{n}") for n in (1, 2, 3)], remote_python=str(python)) as cluster:
        assert [host.name for host in cluster.hosts] == ["db-1", "db-2"]
        [lost] = cluster.lost
        assert (lost.host, lost.failure.code) == ("db-3", FailureCode.FAILED)
        assert lost.failure.detail.startswith("its Dask process did not start: ")
        assert "/proc/no" in lost.failure.detail
    sshd.wait_until_gone()


UNREACHED = {
    "db-refused": ("HostName 127.0.0.1\n  Port 1", "Connection refused"),
    "db-no-name": ("HostName no-such-host.invalid", "resolve"),
    "db-unknown-key": ("HostName 127.0.0.61\n  UserKnownHostsFile {sshd}/nobody", "Host key verification failed"),
    "db-changed-key": ("HostName 127.0.0.61\n  UserKnownHostsFile {sshd}/changed", "Host key verification failed"),
    "db-garbage": ("ProxyCommand sh -c 'head -c 9999999 /dev/zero'", "ssh cannot log in"),
}


async def test_each_host_is_reached_as_ssh_reaches_it_or_named_with_its_message(sshd: Sshd) -> None:
    """By a jump, with a forwarding and a terminal, or without an identity. The others are not affected."""
    sshd.make_key("other")
    other = " ".join((sshd.folder / "other.pub").read_text().split()[:2])
    (sshd.folder / "changed").write_text(f"* {other}\n")
    lines = {
        "db-2": "ProxyJump db-1",
        "db-3": "IdentityFile {sshd}/nothing\n  LocalForward 1 127.0.0.1:1\n  RequestTTY force\n"
        "  RemoteCommand sleep 60",
        **{name: line for name, (line, _) in UNREACHED.items()},
    }
    blocks = [f"Host {name}\n  {line}" for name, line in lines.items()]
    configure(sshd, "\n".join(blocks).format(sshd=sshd.folder))
    lost = await reasons(" ".join(["db-1", *lines]))
    assert sorted(lost) == sorted(UNREACHED)
    for name, (_, words) in UNREACHED.items():
        assert words in lost[name], name
    sshd.wait_until_gone()


@pytest.mark.every
async def test_a_proxy_command_is_a_way_to_a_host(sshd: Sshd) -> None:
    """It is carried out by ssh."""
    configure(sshd, f"Host db-3\n  ProxyCommand ssh -F {configuration(sshd)} -W %h:%p db-1")
    assert await reasons() == {}
    sshd.wait_until_gone()


@pytest.mark.every
async def test_a_master_connection_of_the_user_is_used_and_outlives_the_mesh(sshd: Sshd) -> None:
    """The settings would also make a master of a login, which would outlive it."""
    with tempfile.TemporaryDirectory() as folder:  # a short path: sockets have 108 bytes
        configure(sshd, f"Host db-*\n  ControlMaster auto\n  ControlPath {folder}/%C\n  ControlPersist yes\n")
        ssh = ("ssh", "-F", str(configuration(sshd)))
        subprocess.run([*ssh, "-fN", "db-1"], check=True, timeout=40, stdin=subprocess.DEVNULL)  # noqa: ASYNC221
        try:
            lost = await reasons("db-1 db-2")
            sshd.wait_until_gone()
            sockets = list(Path(folder).iterdir())  # noqa: ASYNC240
        finally:
            subprocess.run([*ssh, "-O", "exit", "db-1"], check=True, timeout=40, capture_output=True)  # noqa: ASYNC221
        assert lost == {}
        assert len(sockets) == 1


async def test_a_key_with_a_passphrase_is_named_with_the_remedy(sshd: Sshd) -> None:
    """Nobody can be asked for it."""
    sshd.make_key("locked", "open sesame")
    with (sshd.folder / "authorized_keys").open("a") as keys:
        keys.write((sshd.folder / "locked.pub").read_text())
    configuration(sshd).write_text(
        configuration(sshd).read_text().replace(f"{sshd.folder}/key", f"{sshd.folder}/locked")
    )
    with pytest.raises(
        ClusterError, match=f"locked needs its passphrase; give it to an agent: ssh-add {sshd.folder}/locked"
    ):
        await reasons("db-1 db-2")


PYTHON = "echo linkgauge-mesh login; echo linkgauge-mesh python 3.11.0; "
HOSTILE = {
    "db-lines": ("while echo welcome to this host; do :; done", "print too much"),
    "db-one-line": (
        "while printf xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; do :; done",
        "print too much",
    ),
    "db-version": (
        "echo linkgauge-mesh login; echo linkgauge-mesh python 3.11.0; echo linkgauge-mesh version 0.0.1; sleep 60",
        "it has linkgauge 0.0.1; install",
    ),
    "db-python": (
        "echo linkgauge-mesh login; echo linkgauge-mesh python 3.9.2; exec sleep 60",
        "is Python 3.9.2; install 3.11",
    ),
    "db-nonsense": (
        r"echo linkgauge-mesh login; printf 'linkgauge-mesh \033[31m\n'; exec sleep 60",
        "cannot be understood",
    ),
    "db-silent": ("exec sleep 60", "did not come up in time; try it by hand"),
    "db-gigabyte": ("exec head -c 1000000000 /dev/zero", "print too much"),
    "db-errors": ("yes >&2 & sleep 1; kill $!; exit 255", "ssh cannot log in to ssh://db-errors: y y y"),
    "db-escapes": (
        f"{PYTHON}printf 'linkgauge-mesh version \\033]0;a\\007\\n'",
        "it has linkgauge \N{REPLACEMENT CHARACTER}]0;a\N{REPLACEMENT CHARACTER}; install",
    ),
    "db-no-word": ("exit 0", "the remote endpoint could not be started (status 0)"),
    "db-only-login": ("echo linkgauge-mesh login; exit 0", "cannot start: it printed nothing"),
    "db-drips": ("echo linkgauge-mesh login; while sleep 1; do echo soon; done", "did not load Dask within 8 s"),
}
READY = f"{PYTHON}echo linkgauge-mesh version {__version__}; echo linkgauge-mesh ready "
# These get so far that the first of them is the scheduler's host.
FIRST = {
    "db-elsewhere": (
        f"{READY}127.0.0.71; echo linkgauge-mesh serves tls://192.0.2.1:8786; exec sleep 60",
        "Dask's scheduler did not start there: its Dask scheduler has an address of another host",
    ),
    "db-no-address": (
        rf"{READY}127.0.0.72; printf 'linkgauge-mesh serves \033[31mtls://127.0.0.72:1\n'; exec sleep 60",
        "the address of its Dask process cannot be understood",
    ),
}


def use_wrapper(sshd: Sshd, monkeypatch: pytest.MonkeyPatch, scripts: Mapping[str, tuple[str, str]]) -> None:
    """Have a script instead of ssh for each of some hosts; the others are real."""
    wrapper = sshd.folder / "wrapper"
    cases = "".join(f" *{name}*) {script};;" for name, (script, _) in scripts.items())
    wrapper.write_text(
        f'#!/bin/sh\ncase " $* " in *" -G "*) ;;{cases} esac\nexec ssh -F {configuration(sshd)} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv(SSH_COMMAND_VARIABLE, str(wrapper))


def check_reasons(lost: Mapping[str, str], scripts: Mapping[str, tuple[str, str]]) -> None:
    """Check that each host of the scripts is lost with its reason, and no other."""
    assert sorted(lost) == sorted(scripts)
    for name, (_, words) in scripts.items():
        assert words in lost[name], name
        assert lost[name].isprintable()


async def test_a_hostile_end_of_ssh_costs_its_own_host_only(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it prints, and however slowly or much."""
    use_wrapper(sshd, monkeypatch, HOSTILE)
    monkeypatch.setattr(host_login, "LOGIN_DEADLINE_S", 8.0)
    monkeypatch.setattr(host_login, "IMPORT_DEADLINE_S", 8.0)
    check_reasons(await reasons(" ".join(["db-1", "db-2", *HOSTILE])), HOSTILE)
    sshd.wait_until_gone()


@pytest.mark.every
async def test_a_first_host_that_cannot_have_the_scheduler_is_lost_and_the_next_one_has_it(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it names an address of another host, or nonsense."""
    use_wrapper(sshd, monkeypatch, FIRST)
    check_reasons(await reasons(" ".join([*FIRST, "db-1", "db-2"])), FIRST)
    sshd.wait_until_gone()
