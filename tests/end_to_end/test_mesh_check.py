"""`mesh --check` on hosts with one fault each: what is wrong with every host, and that nothing stays behind."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .mesh_hosts import DEADLINE_S
from .mesh_ssh_hosts import SshHosts, open_ssh_hosts
from .namespaces import run_within

PORT = 45_101
# Two hosts are good. The others: what their line, or the line of the paths to them, must say.
GOOD = ("host-1", "host-2")
DOWN, REFUSING, OLD, BROKEN, CHANGED, FILTERED, SHUT = (f"host-{number}" for number in range(3, 10))
WORDS = {
    DOWN: "ssh cannot log in to ssh://host-3",
    REFUSING: "Permission denied (publickey); allow a key of yours there",
    OLD: "is Python 3.9.2; install 3.11 or newer with linkgauge[mesh], and give its path with --remote-python",
    BROKEN: "cannot start: ",
    CHANGED: "its key has changed; if it was set up anew, forget the old key: ssh-keygen -f ",
}


def break_hosts(made: SshHosts, python: Path) -> None:
    """Give each host its fault."""
    servers = made.servers
    python.write_text(
        "#!/bin/sh\n"
        'case "$SSH_CONNECTION" in\n'
        f"*{servers[OLD].address}*)\n"  # as a Python that knows no -P
        '  case "$*" in *-P*) echo "Unknown option: -P" >&2; exit 2;; *version_info*) '
        'echo "linkgauge-mesh python 3.9.2"; exit 0;; esac;;\n'
        f"*{servers[BROKEN].address}*)\n"
        '  echo "error while loading shared libraries: libpython.so" >&2; exit 127;;\n'
        "esac\n"
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    made.hosts.cut(DOWN)
    (servers[REFUSING].folder / "authorized_keys").write_text("")
    other = servers[GOOD[0]].folder / "key.pub"
    kind, key = other.read_text().split()[:2]
    changed = servers[CHANGED]
    (changed.folder / "known_hosts").write_text(f"[{changed.address}]:{changed.port} {kind} {key}\n")
    drop(made.hosts.entries[FILTERED], f"tcp dport {PORT} drop")
    drop(made.hosts.entries[SHUT], f"ct state new tcp dport != {servers[SHUT].port} drop")


def drop(entry: list[str], rule: str) -> None:
    """Have the firewall of a host drop packets."""
    run_within(entry, "nft", "add", "table", "inet", "filter")
    run_within(entry, "nft", "add chain inet filter input { type filter hook input priority 0; }")
    run_within(entry, "nft", f"add rule inet filter input {rule}")


def run_check(made: SshHosts, python: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Carry the command out beside the hosts."""
    command = [*made.hosts.hub, sys.executable, "-P", "-m", "linkgauge", "mesh", *made.servers, "--check"]
    command += ["--remote-python", str(python), "--port", str(PORT), *words]
    return subprocess.run(
        command, env=made.environment, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False
    )


@pytest.mark.every
@pytest.mark.timeout(240)
def test_a_check_names_each_host_and_path_that_cannot_be_used_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """One down, one refusing the key, one with an old and one with a broken Python, one with a changed key.

    One drops what comes to the planned port, and one whatever comes to any port but ssh's.
    """
    if shutil.which("nft") is None:
        pytest.skip("nft makes the firewalls (Debian: nftables)")
    with open_ssh_hosts(tmp_path, 9) as made:
        python = tmp_path / "python"
        break_hosts(made, python)
        done = run_check(made, python)
        lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
        assert done.returncode == 3, done
        for name in (*GOOD, FILTERED):
            assert lines[name].startswith(f"usable: {made.servers[name].address}, linkgauge "), done
        for name, words in WORDS.items():
            assert lines[name].startswith("not usable: "), done
            assert words in lines[name], done
        assert "firewalls must let the scheduler connect to free ports of this host" in lines[SHUT], done
        assert f"no answer from {made.servers[FILTERED].address}:{PORT}" in lines[f"all others to {FILTERED}"], done
        assert "firewall" in lines[f"all others to {FILTERED}"]
        assert lines["not usable"].replace("\u00a0", " ") == "6 of 9 hosts, 2 of 6 paths"
        for server in made.servers.values():
            server.wait_until_gone()


@pytest.mark.every
@pytest.mark.timeout(240)
def test_the_check_of_good_hosts_passes_in_json_too(tmp_path: Path) -> None:
    """By a file of hosts. With datagrams, each pair also opens a UDP session, which a firewall may drop alone."""
    if shutil.which("nft") is None:
        pytest.skip("nft makes the firewalls (Debian: nftables)")
    with open_ssh_hosts(tmp_path, 3) as made:
        file = tmp_path / "rack.txt"
        file.write_text("".join(f"{name} rack-1\n" for name in made.servers))
        words = [*made.hosts.hub, sys.executable, "-P", "-m", "linkgauge", "mesh", "--hosts", str(file), "--check"]
        words += ["--remote-python", sys.executable, "--json", "--workload", "udp", "--port", str(PORT)]

        def check() -> tuple[int, dict[str, Any]]:
            done = subprocess.run(
                words, env=made.environment, capture_output=True, text=True, timeout=3 * DEADLINE_S, check=False
            )
            return done.returncode, json.loads(done.stdout)

        status, document = check()
        assert (status, document["is_usable"], len(document["paths"])) == (0, True, 6), document
        assert {host["group"] for host in document["hosts"]} == {"rack-1"}
        drop(made.hosts.entries["host-2"], f"udp dport {PORT} drop")
        status, document = check()
        failed = {(path["sender"], path["receiver"]) for path in document["paths"] if path["failure"]}
        assert (status, failed) == (3, {("host-1", "host-2"), ("host-3", "host-2")}), document
        made.check_that_nothing_is_left()
