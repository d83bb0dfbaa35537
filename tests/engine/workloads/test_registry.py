"""The registry of sessions: each workload has the types of its two ends."""

import pytest
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workloads.registry import register_sessions, sessions_of
from linkgauge.engine.workloads.request_response import RrRequester, RrResponder


def test_the_responder_of_transactions_is_their_sender() -> None:
    """Responses are the payload."""
    assert sessions_of(Workload.RR).sender is RrResponder
    assert sessions_of(Workload.RR).receiver is RrRequester


def test_a_workload_gets_its_sessions_once() -> None:
    """A second registration would change what a name carries."""
    with pytest.raises(ValueError, match="rr has its sessions already"):
        register_sessions(Workload.RR, sender=RrResponder, receiver=RrRequester)


def test_a_workload_without_sessions_is_an_error() -> None:
    """Its module registered the name alone."""
    with pytest.raises(KeyError):
        sessions_of(Workload("nobody"))
