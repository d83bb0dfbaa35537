"""The registry of sessions: each workload has the types of its two ends."""

import subprocess
import sys

import pytest
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workloads.registry import register_sessions, sessions_of
from linkgauge.engine.workloads.request_response import RrRequester, RrResponder


def test_the_responder_of_transactions_is_their_sender() -> None:
    """Responses are the payload."""
    assert sessions_of(Workload.RR).sender is RrResponder
    assert sessions_of(Workload.RR).receiver is RrRequester


def test_a_workload_gets_its_sessions_once() -> None:
    """A second registration would change the meaning of a name."""
    with pytest.raises(ValueError, match="rr has its sessions already"):
        register_sessions(Workload.RR, sender=RrResponder, receiver=RrRequester)


def test_a_workload_without_sessions_is_an_error() -> None:
    """Its module registered the name alone."""
    with pytest.raises(KeyError):
        sessions_of(Workload("nobody"))


def test_a_worker_imports_what_carries_datagrams_for_them_only() -> None:
    """It would start a tenth later, for any workload."""
    script = "import sys, linkgauge.engine.workers.worker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    names = {name.removeprefix("linkgauge.engine.") for name in loaded.split()}
    assert "workloads.stream" in names
    datagrams = {name for name in names if "datagram" in name or ".udp." in name}
    assert datagrams <= {"model.counters.session_counters", "workloads.udp.socket_options"}
