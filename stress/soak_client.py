"""A near end as a program: a run that is recorded in a run log, with changes of its settings while it lasts.

Usage: .venv/bin/python stress/soak_client.py PEER --seconds 3 --seed 1 [--workload rr] [--tls FINGERPRINT]

The key is the first line of standard input, the run log in LINKGAUGE_DATA_DIR. Prints "running" with the first
sample, and at the end one line of JSON: the run, the reason of its end, and what could not be recorded.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import random
import sys
from dataclasses import replace
from typing import Any

from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.model.workload import workload_named
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.session.run_session import open_run_session
from linkgauge.tui.session.run_spec import RunSpec
from linkgauge.tui.session.storage import data_dir
from random_plans import change_of


async def _carry_out(plan: Plan, peer: Peer, chance: random.Random) -> dict[str, Any]:
    """Carry out a run; return how it ended."""
    end: dict[str, Any] = {"reason": "nothing", "detail": ""}
    is_running = False
    with RunLog.open(data_dir()) as log:
        try:
            async with open_run_session(RunSpec(plan, peer), log=log) as session:
                end["run_id"] = session.run_id
                async for event in session:
                    if isinstance(event, Sampled) and not is_running:
                        is_running = True
                        print("running", flush=True)
                    if isinstance(event, Sampled) and chance.random() < 0.15:
                        session.change_settings(change_of(chance, session.settings, most_sessions=4))
                    if isinstance(event, Ended):
                        end |= {"reason": event.end.reason.value, "detail": event.end.detail}
        except LinkgaugeError as error:
            end |= {"reason": type(error).__name__, "detail": str(error)}
    return {**end, "problem": log.problem}


def main() -> int:
    """Carry out a run; return 0 once its end is printed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workload", default="stream")
    parser.add_argument("--tls", default="", help="the fingerprint of the endpoint's certificate")
    options = parser.parse_args()
    access = Access(SharedKey(sys.stdin.readline().strip()), fingerprint=bytes.fromhex(options.tls) or None)
    chance = random.Random(options.seed)
    workload = workload_named(options.workload)
    plan = Plan(
        Settings(
            chance.choice(list(Direction)),
            chance.choice((1, 2, 4)),
            rate_bit_s=20_000_000 if workload.is_datagram else None,
        ),
        workload,
        duration_ns=round(options.seconds * SECOND_NS),
        interval_ns=SECOND_NS // 10,
        block_bytes=65_536,
        response_bytes=65_536 if options.workload == "fetch" else None,
    )
    peer = replace(Peer.parse(options.peer), access=access)
    print(json.dumps(run(_carry_out(plan, peer, chance))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
