"""Which flows send again, and how much."""

from linkgauge.engine.results.flows.loss_judgement import judge_losses
from linkgauge.engine.results.flows.next_round import MAX_ROUNDS, plan_next_round

from .simulated_flows import simulate

MOST = 200_000


def test_suspects_send_again_with_as_many_good_flows() -> None:
    """So that both are compared at the same time."""
    judged = judge_losses(simulate([0.1] * 32 + [0.0] * 224, seed=1))
    following = plan_next_round([judged], 1, 200, MOST)
    assert following is not None
    assert set(judged.bad) < set(following.places)
    assert len(following.places) == 2 * (len(judged.bad) + len(judged.unclear))


def test_a_rare_loss_wants_more_datagrams_within_the_time() -> None:
    """A bad flow may have lost none of the first ones."""
    judged = judge_losses(simulate([0.01] * 64 + [0.0] * 192, seed=1))
    following = plan_next_round([judged], 1, 200, MOST)
    assert following is not None
    assert following.sweeps > 200
    assert following.sweeps * len(following.places) <= MOST


def test_nothing_more_is_sent_once_it_is_clear_or_there_were_enough_rounds() -> None:
    """No loss is clear at once."""
    assert plan_next_round([judge_losses(simulate([0.0] * 64, seed=1))], 1, 200, MOST) is None
    judged = judge_losses(simulate([0.1] * 32 + [0.0] * 224, seed=1))
    assert plan_next_round([judged], MAX_ROUNDS, 200, MOST) is None
