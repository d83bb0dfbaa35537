"""The systemd units: their bounds on processes and memory against an endpoint's default limits."""

import re
from pathlib import Path
from typing import Final

from linkgauge.engine.far.memory_estimate import WORKER_BYTES, estimate_memory, windows_of
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.workloads.session import RECEIVE_BYTES

UNIT: Final = Path(__file__).parents[2] / "packaging" / "linkgauge.service"
_MOST_MEMORY_BYTES: Final = 4 << 30  # the largest default of memory_bytes, and at most half of the host's memory
_TASKS_OF_WORKER: Final = 2  # a worker whose session is alone has a thread
_OTHER_TASKS: Final = 64  # the endpoint, its fork server, and their threads


def setting(name: str) -> str:
    """Return the value of a setting of the service."""
    (value,) = re.findall(rf"^{name}=(.*)$", UNIT.read_text(encoding="ascii"), re.MULTILINE)
    return value


def test_the_service_may_have_as_many_tasks_as_the_limit_of_memory_allows() -> None:
    """Otherwise a run within the limits would find no process."""
    assert Limits().memory_bytes <= _MOST_MEMORY_BYTES
    workers = _MOST_MEMORY_BYTES // (WORKER_BYTES + RECEIVE_BYTES)
    assert int(setting("TasksMax")) >= workers * _TASKS_OF_WORKER + _OTHER_TASKS


def test_the_service_may_have_more_memory_than_the_limit_allows_and_leaves_some_to_others() -> None:
    """The limit is half of the host's memory at most: runs are refused before anything is killed."""
    assert 60 <= int(setting("MemoryMax").removesuffix("%")) <= 90


def test_a_default_run_of_every_client_is_within_the_default_limits_of_one_address() -> None:
    """On a host of some memory."""
    plan = Plan(Settings(sessions=4))
    assert estimate_memory(plan, windows_of(plan.settings), 4) < 64 << 20
