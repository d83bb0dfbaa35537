"""An observation in a terminal."""

import io
from dataclasses import replace

from linkgauge.observe.observation import Observation
from linkgauge.tui.cli.render.observed_table import observation_parts, owner_text, totals_text
from rich.console import Console

from ....observe.test_observation_json import CONNECTION, OBSERVATION


def printed(observation: Observation, width: int = 120) -> str:
    """Return the text of an observation in a terminal of this width."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as capture:
        for part in observation_parts(observation):
            console.print(part)
    return capture.get()


def test_a_limited_connection_has_its_reason_its_evidence_and_its_remedy() -> None:
    """The reason in its row, the rest below the table."""
    text = printed(OBSERVATION)
    for part in ("rsync/1", "[2001:db8::1]:443", "12.35", "It is slow.", "by its window", "to do: do something"):
        assert part in text
    assert "A note." in text
    assert "UDP sockets" in text


def test_a_narrow_terminal_leaves_columns_out_and_cuts_no_number() -> None:
    """The rate and the remote end stay."""
    text = printed(OBSERVATION, 70)
    assert "12.35" in text
    assert "[2001:db8::1]:443" in text


def test_a_process_that_is_not_visible_has_its_user() -> None:
    """The kernel tells the user of every socket."""
    assert owner_text(None, "bob") == "(user bob)"
    assert owner_text(CONNECTION.owner, "bob") == "rsync/1"


def test_totals_have_the_connections_that_ended() -> None:
    """Those that no dump had are counted apart."""
    assert "ended" not in totals_text(OBSERVATION)
    totals = replace(OBSERVATION.totals, ended=5, short_lived=2)
    assert "5 ended, 2 within one interval" in totals_text(replace(OBSERVATION, totals=totals))
