"""`linkgauge respond`: latency under load, its grade, and where the queue is."""

from typing import Annotated

import typer

from ..latency_options import LatencyOptions, LoadOptions, check_measurable
from ..options import ResultOptions
from ..peer_options import AccessOptions, SshOptions
from ..turn_options import TurnOptions


def respond(
    peer: Annotated[
        str,
        typer.Argument(
            metavar="PEER", show_default=False, help="HOST[:PORT], ssh://[USER@]HOST[:PORT], or loopback."
        ),
    ],
    *,
    load: LoadOptions,
    turn: TurnOptions,
    latency: LatencyOptions,
    access: AccessOptions,
    ssh: SshOptions,
    output: ResultOptions,
) -> int:
    """Measure latency under load, grade it, and find the queue that causes it.

    Latency is measured without load, then with the link loaded out, in, and both ways, each until rate and latency
    are steady: 25 s at most. Without --max-rise or --grade nothing is judged.
    """
    from ...services.run_spec import Judging, Record, RunSpec
    from ..runners.run_test import run_test

    plan, limit = turn.apply_to(load.to_plan()), latency.limit()
    far_end = ssh.apply_to(access.parse_peer(peer))
    check_measurable(far_end, "latency under load")
    from ....engine.results.run_log.labels import validate_label  # here: it loads SQLite

    return run_test(
        RunSpec(
            plan,
            far_end,
            Judging(latency_limit=limit),
            Record(label=validate_label(output.label)),
            output.to_outputs(),
        )
    )
