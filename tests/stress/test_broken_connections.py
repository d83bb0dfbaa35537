"""Connections that break at every state, towards an endpoint and towards a near end."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KINDS = ["keyed uvloop", "keyed asyncio", "open uvloop", "open asyncio", "tls uvloop", "tls asyncio"]


def carry_out(script: str, *options: str, deadline_s: float) -> None:
    """Run a script of this folder, which says at its end whether all was well."""
    command = [sys.executable, f"stress/{script}.py", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=deadline_s)
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-4_000:]
    assert done.stdout.splitlines()[-1].endswith("CLEAN")


@pytest.mark.every
def test_an_endpoint_lets_go_of_clients_that_break_off_and_serves_the_next() -> None:
    """One state after the other, of connections with and without TLS."""
    carry_out("broken_connections", "--sample", deadline_s=55)


@pytest.mark.every
@pytest.mark.timeout(420)
@pytest.mark.parametrize("kind", KINDS)
def test_an_endpoint_lets_go_of_clients_that_break_off_in_every_state_and_way(kind: str) -> None:
    """All states and all ways."""
    carry_out("broken_connections", "--only", kind, deadline_s=400)


@pytest.mark.every
def test_a_near_end_ends_with_a_reason_when_its_far_end_breaks_off() -> None:
    """One state after the other; what a person reads has a remedy, and nothing is left."""
    carry_out("broken_far_ends", "--sample", deadline_s=55)


@pytest.mark.every
@pytest.mark.timeout(420)
@pytest.mark.parametrize("kind", KINDS)
def test_a_near_end_ends_with_a_reason_when_its_far_end_breaks_off_in_every_state_and_way(kind: str) -> None:
    """All states and all ways."""
    carry_out("broken_far_ends", "--only", kind, deadline_s=400)
