"""A link with a policer, and one that loses packets by chance: told apart by a whole check."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import Faults, plan_lab_link

from .policed_link import policed

pytestmark = [pytest.mark.alone, pytest.mark.every]

DEADLINE_S = 60.0
TRIES = 3
PRESET = "100mb-fd"


@pytest.fixture(scope="module", autouse=True)
def _data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the runs of this module away from a person's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        yield


def first_finding(enter: Sequence[str], peer: object) -> str:
    """Check the link, and return the code of the first finding."""
    options = ("--seconds", "6", "--congestion", "cubic", "--json")
    command = [*enter, sys.executable, "-P", "-m", "linkgauge", "check", PRESET, str(peer), *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert result.stdout, result.stderr
    return json.loads(result.stdout)["why"][0]["code"]


def check(faults: Faults, police: tuple[float, int] | None = None) -> str:
    """Return the first finding over a link of 100 Mb/s with faults, or behind a policer of some Mb/s and bytes."""
    with ExitStack() as stack:
        try:
            lab = stack.enter_context(open_lab(plan_lab_link(load_catalog().find(PRESET), faults)))
        except LabUnavailable as error:
            pytest.skip(str(error))
        if police is None:
            return first_finding(lab.near_end_command([]), lab.peer)
        return first_finding(stack.enter_context(policed(lab, *police)), lab.peer)


def test_a_token_bucket_without_a_queue_is_named_a_policer() -> None:
    """8 Mb/s of a line of 100. A run that begins with a full bucket may look like chance: there are several."""
    assert "policer" in [check(Faults(delay_ms=5), (8, 100_000)) for _ in range(TRIES)]


@pytest.mark.parametrize("delay_ms", [2, 20])
def test_loss_by_chance_is_never_named_a_policer(delay_ms: float) -> None:
    """Whatever its round trip, by the seed of the relay."""
    assert {check(Faults(delay_ms=delay_ms, loss_percent=1, seed=seed)) for seed in range(TRIES)} == {"loss"}
