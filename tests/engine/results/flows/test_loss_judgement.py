"""Which flows lose more than the others: named, confirmed, or alike."""

import pytest
from linkgauge.engine.results.flows.loss_judgement import LossKind, judge_losses

from .simulated_flows import simulate


@pytest.mark.parametrize("loss", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("bad", [16, 64, 128])
def test_the_flows_on_a_lossy_link_are_named_and_confirmed(loss: float, bad: int) -> None:
    """And at most one in a hundred of the others."""
    judged = judge_losses(simulate([loss] * bad + [0.0] * (256 - bad), seed=bad, rounds=2))
    assert judged.kind is LossKind.APART
    assert len(set(judged.bad) - set(range(bad))) <= 1
    assert len(set(range(bad)) - set(judged.bad) - set(judged.unclear)) <= 0.03 * bad
    assert judged.is_confirmed
    assert judged.share is not None
    assert judged.share.low <= bad / 256 <= judged.share.high


@pytest.mark.parametrize("loss", [0.02, 0.05, 0.2])
def test_a_loss_on_all_flows_is_no_bad_member(loss: float) -> None:
    """It says so."""
    judged = judge_losses(simulate([loss] * 256, seed=1))
    assert (judged.kind, judged.bad) == (LossKind.ALIKE, ())
    assert judged.low == pytest.approx(loss, rel=0.2)
    assert not judged.wants_more


def test_no_loss_is_no_finding() -> None:
    """Nor wants it more datagrams."""
    judged = judge_losses(simulate([0.0] * 64, seed=1))
    assert (judged.kind, judged.wants_more, judged.share) == (LossKind.NONE, False, None)


def test_a_moment_in_which_all_is_lost_is_no_bad_flow() -> None:
    """Every flow loses the same sweeps."""
    flows = simulate([0.0] * 128, seed=1)
    for flow in flows:
        flow.rounds[0].delays[40:60] = [None] * 20  # type: ignore[index]
    assert judge_losses(flows).kind is LossKind.ALIKE


def test_few_losses_want_more_datagrams() -> None:
    """And bad flows that no later round has confirmed."""
    few = judge_losses(simulate([0.0004] * 256, seed=3))
    assert few.kind is LossKind.FEW
    assert few.wants_more
    once = judge_losses(simulate([0.1] * 64 + [0.0] * 192, seed=3))
    assert once.bad
    assert once.wants_more
    assert not once.is_confirmed
