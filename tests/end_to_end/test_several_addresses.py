"""A name with several addresses, most of which do not answer: /etc/hosts and a link of the test's own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import DEADLINE_S
from .veth_link import VethLink

PORT = 5_211
GOOD = ("10.9.0.200", "fd09::200")
# The resolver sorts by the length of the prefix shared with this end's address: these come before the good ones.
DEAD = ("10.9.0.3", "10.9.0.2", "fd09::3", "fd09::2")
_WITH_HOSTS = 'mount --bind "$0" /etc/hosts && exec "$@"'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Give an environment with directories of the test's own."""
    folders = {"LINKGAUGE_DATA_DIR": str(tmp_path / "data"), "LINKGAUGE_CONFIG_DIR": str(tmp_path / "config")}
    return {**os.environ, **folders, "PYTHONWARNINGS": "error"}


@pytest.fixture
def endpoint(link: VethLink, environment: dict[str, str]) -> Iterator[None]:
    """Give an open endpoint at the far end of a link with addresses of both families."""
    for family, near, far, more in (
        ("-4", "10.9.0.1/24", GOOD[0] + "/24", []),
        ("-6", "fd09::1/64", GOOD[1] + "/64", ["nodad"]),
    ):
        link.run(link.near, "ip", family, "addr", "add", near, "dev", "near0", *more)
        link.run(link.far, "ip", family, "addr", "add", far, "dev", "far0", *more)
    process = subprocess.Popen(
        [*link.far, sys.executable, "-P", "-m", "linkgauge", "endpoint", "--open", "--port", str(PORT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    yield
    process.terminate()
    process.communicate(timeout=DEADLINE_S)


def run(
    link: VethLink, environment: dict[str, str], addresses: tuple[str, ...], *options: str
) -> "subprocess.CompletedProcess[str]":
    """Run a test against a name that has these addresses."""
    hosts = Path(environment["LINKGAUGE_DATA_DIR"]).parent / "hosts"
    hosts.write_text("".join(f"{address} many-homes\n" for address in addresses))
    command = [sys.executable, "-P", "-m", "linkgauge", "run", f"many-homes:{PORT}", "--seconds", "0.5", *options]
    return subprocess.run(
        [*link.near, "unshare", "--mount", "sh", "-c", _WITH_HOSTS, str(hosts), *command],
        stdin=subprocess.DEVNULL,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.usefixtures("endpoint")
@pytest.mark.parametrize(
    ("good", "options"),
    [
        (GOOD[:1], ["--workload", "crr", "--direction", "in"]),
        pytest.param(GOOD, ["--source", "10.9.0.1"], marks=pytest.mark.every),
        pytest.param(GOOD, ["--source", "fd09::1"], marks=pytest.mark.every),
        pytest.param(GOOD, ["--device", "near0"], marks=pytest.mark.every),
    ],
)
def test_dead_addresses_do_not_keep_a_run_from_the_one_that_answers(
    link: VethLink, environment: dict[str, str], good: tuple[str, ...], options: list[str]
) -> None:
    """Nobody has the others; data goes to the address that has answered."""
    done = run(link, environment, (*DEAD, *good), *options, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ended"]["reason"] == "completed"


@pytest.mark.every  # it lasts as long as the deadline
def test_only_dead_addresses_are_an_error_that_names_them(link: VethLink, environment: dict[str, str]) -> None:
    """Within the deadline of one."""
    link.run(link.near, "ip", "addr", "add", "10.9.0.1/24", "dev", "near0")
    done = run(link, environment, DEAD[:2])
    assert done.returncode == 3
    assert "many-homes:5211" in done.stderr
    assert "(tried 10.9.0." in done.stderr


@pytest.mark.usefixtures("endpoint")
@pytest.mark.parametrize(
    ("option", "address"), [pytest.param("-4", GOOD[0], marks=pytest.mark.every), ("-6", GOOD[1])]
)
def test_the_ip_version_is_chosen_and_named_and_decides_the_expected_rate(
    link: VethLink, environment: dict[str, str], option: str, address: str
) -> None:
    """Of a name with addresses of both versions."""
    done = run(link, environment, GOOD, option, "--preset", "gbe-fd-1500", "--json")
    assert done.returncode in {0, 1, 4}, done.stderr
    document = json.loads(done.stdout)
    assert (document["peer"], document["address"]) == (f"many-homes:{PORT}", address)
    assert document["ip_version"] == int(option[1])
    assert ("IPv6" in document["expected"]["out"]["source"]) == (option == "-6")


@pytest.mark.every
@pytest.mark.usefixtures("endpoint")
def test_headers_that_are_not_in_use_and_an_address_that_is_missing_are_errors(
    link: VethLink, environment: dict[str, str]
) -> None:
    """Each says what to leave out."""
    done = run(link, environment, GOOD, "-4", "--preset", "gbe-fd-1500", "--ipv6")
    assert done.returncode == 2
    assert "the connection uses IPv4: leave it out, or connect with -6" in done.stderr
    done = run(link, environment, GOOD[:1], "-6")
    assert done.returncode == 3
    assert "it has no IPv6 address; leave out -6" in done.stderr
