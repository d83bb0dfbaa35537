"""The form of a sweep: its size as it is typed, and problems beside it."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.sweep import Sweep
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.kit.widgets.typed_input import TextField
from linkgauge.tui.sweep.sweep_form import SweepForm
from textual.app import App
from textual.widgets import Static


async def answer_form(*fields: tuple[str, str]) -> tuple[str, Any]:
    """Fill in fields of a form and press Enter; return the line below the fields, and the answers."""
    answers: list[Sweep | None] = []
    app: App[None] = App()
    async with app.run_test(size=(100, 30)) as pilot:
        form = SweepForm(load_catalog(), "db-02", "10gbe-fd-1500", "in")
        await app.push_screen(form, answers.append)
        for name, value in fields:
            form.query_one(f"#{name}", TextField).value = value
        await pilot.pause()
        line = str(form.query_one("#comes-to", Static).render())
        await pilot.press("enter")
        await pilot.pause()
    return line.replace("\u00a0", " "), answers


async def test_the_form_answers_a_sweep_of_its_fields() -> None:
    """Direction and preset come from the cockpit; the number of runs is shown."""
    line, (sweep,) = await answer_form(("window", "64K,1M"), ("sessions", "1,2,5"), ("seconds", "2"))
    assert line.startswith("6 runs, about ")
    assert line.endswith("compared with 10gbe-fd-1500")
    assert (sweep.peer, sweep.preset, sweep.directions) == ("db-02", "10gbe-fd-1500", (Direction.IN,))
    assert (sweep.windows, sweep.sessions) == ((65_536, 1_048_576), (1, 2, 5))


@pytest.mark.parametrize(("name", "value"), [("window", "4M..64K"), ("sessions", "0"), ("seconds", "0")])
async def test_an_invalid_field_is_named_and_keeps_the_form_open(name: str, value: str) -> None:
    """By its name in the form. Enter does not start anything."""
    line, answers = await answer_form((name, value))
    assert line.startswith(f"✗ {name}")
    assert answers == []


async def test_a_figure_replaces_the_axes_and_the_preset() -> None:
    """As on the command line."""
    _, (sweep,) = await answer_form(("window", "64K"), ("figure", "hp-1"))
    assert (sweep.figure, sweep.preset) == ("hp-figure-1", "hp-atm155-clip-9180")
    assert len(sweep.points) == 24
