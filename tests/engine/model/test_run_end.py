"""The reasons of ends; their sentences are in test_events.py."""

from linkgauge.engine.model.run_end import Reason


def test_only_a_completed_or_stopped_run_ended_as_wanted() -> None:
    """Every other reason is a failure to a program."""
    assert {reason for reason in Reason if reason.is_regular} == {Reason.COMPLETED, Reason.STOPPED}
    assert {reason for reason in Reason if not reason.is_fault} == {
        Reason.COMPLETED,
        Reason.STOPPED,
        Reason.INTERRUPTED,
    }
