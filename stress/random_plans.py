"""Plans and changes of settings by chance, of every workload."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import random
from dataclasses import replace

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload, all_workloads

_RATES = (1_000_000, 20_000_000, 100_000_000)  # of datagrams
SIZES = (None, 64, 1_400)  # None: as large as the path carries


def plan_of(chance: random.Random, seconds: float = 1.0, workload: Workload | None = None) -> Plan:
    """Return a random plan, of any workload unless one is given."""
    drawn = chance.choice([*all_workloads(), Workload.STREAM]) if workload is None else workload
    settings = Settings(chance.choice(list(Direction)), chance.choice((1, 2, 5)))
    if drawn.is_datagram:
        settings = replace(settings, rate_bit_s=chance.choice(_RATES), datagram_bytes=chance.choice(SIZES))
    else:
        settings = replace(settings, window_bytes=chance.choice((None, 65_536)))
    size = 65_536 if drawn is Workload.FETCH else None
    return Plan(
        settings,
        drawn,
        duration_ns=int(seconds * SECOND_NS),
        interval_ns=SECOND_NS // 10,
        block_bytes=chance.choice((4_096, 65_536)),
        response_bytes=size,
    )


def change_of(chance: random.Random, settings: Settings, most_sessions: int = 6) -> Settings:
    """Return a random change of settings: of a rate and a size if there is a rate, else of a window."""
    changed = settings.with_changes(
        direction=chance.choice(list(Direction)), sessions=chance.randint(1, most_sessions)
    )
    if settings.rate_bit_s is not None:
        return replace(changed, rate_bit_s=chance.choice(_RATES), datagram_bytes=chance.choice(SIZES))
    return replace(changed, window_bytes=chance.choice((None, 65_536, 131_072)))
