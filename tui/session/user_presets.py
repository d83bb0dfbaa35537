"""The user's presets: read with linkgauge's own, or made from a run of the log.

Reading them must not import the run log, which takes long to load: what only `make_preset` needs is imported late.
"""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...engine.model.errors import UnknownPreset, UsageError
from ...engine.model.texts.shell_commands import shell_command
from ...presets.catalog import Catalog, load_catalog
from ..words.numbers import sanitize
from .storage import presets_dir

if TYPE_CHECKING:
    from ...engine.results.run_log import RunRecord
    from ...engine.results.summary import Summary
    from ...presets.preset import LinkSpec

_log = logging.getLogger(__name__)


def load_presets(report: Callable[[str], object] = lambda _line: None) -> Catalog:
    """Return linkgauge's presets and the user's; `report` gets a line for each problem of the user's files."""
    catalog = load_catalog([presets_dir()])
    for line in problem_lines(catalog):
        report(line)
    return catalog


def problem_lines(catalog: Catalog) -> list[str]:
    """Return each problem of a preset file as one harmless line: file, key, expected value."""
    return [sanitize(str(problem)) for problem in catalog.problems]


@dataclass(frozen=True, slots=True)
class NewPreset:
    """A preset that was just made: its file, the command that uses it, and notices for the user."""

    path: Path
    check_command: str
    notices: tuple[str, ...]


def make_preset(preset_id: str, run: str, *, force: bool) -> NewPreset:
    """Write a preset that expects the rates of a run.

    Raises PlanError for an invalid id, UsageError for an id that is taken or a run that cannot be used, and OSError
    if the file cannot be written.
    """
    from ...engine.host.saved_files import create_directory, write_atomically
    from ...engine.model.workload import Workload
    from ...presets.baseline import baseline_toml, check_preset_id
    from .storage import find_run, open_run_list
    from .stored_run import load_stored_run

    check_preset_id(preset_id)
    path = presets_dir() / f"{preset_id}.toml"
    _check_unused(preset_id, path, force=force)
    with open_run_list() as log:
        row = find_run(log, run)
        if row.is_running:
            raise UsageError(f"run {row.run_id} is still running: make a preset of it when it has ended")
        summary = load_stored_run(log, row).outcome.summary
    link, notices = _link_of(row, summary, load_presets())
    day = "an unknown day" if row.started_utc is None else row.started_utc[:10]
    text = baseline_toml(
        summary,
        preset_id=preset_id,
        name=f"{row.peer} as measured on {day}",
        run_id=row.run_id,
        started_utc=day,
        link=link,
    )
    create_directory(path.parent)
    write_atomically(path, text)
    _log.debug("wrote preset %s of run %s to %s", preset_id, row.run_id, path)
    problems = [str(problem) for problem in load_presets().problems if problem.path == str(path)]
    workload = summary.plan.workload
    options = () if workload is Workload.STREAM else ("--workload", workload)
    return NewPreset(path, shell_command("check", preset_id, row.peer, *options), (*notices, *problems))


def _check_unused(preset_id: str, path: Path, *, force: bool) -> None:
    """Raise UsageError for an id of linkgauge's, of another file, or of this file unless it may be replaced."""
    if any(preset.id == preset_id for preset in load_catalog().presets):
        raise UsageError(f"preset {preset_id} is a built-in preset: give another id")
    if os.path.lexists(path):
        if not force:
            raise UsageError(f"{path} exists already: give another id, or --force to replace it")
    elif any(preset.id == preset_id for preset in load_presets().presets):
        raise UsageError(f"a file in {path.parent} already has a preset {preset_id}: give another id")


def _link_of(row: "RunRecord", summary: "Summary", catalog: Catalog) -> "tuple[LinkSpec, tuple[str, ...]]":
    """Return the link of the run's preset. If it is not known, return an empty link and the reason."""
    from ...presets.baseline import NO_WIRE
    from ...presets.expectation import WIRE_MODEL

    if not row.preset:
        return NO_WIRE, ()
    consequence = "so the file has no link; [preset.link] may be filled in"
    expectation = summary.expectation
    for rate in (expectation.out, expectation.in_, expectation.total):
        if rate is not None and rate.basis == "computed" and rate.source != WIRE_MODEL:
            return NO_WIRE, (f"the run was compared with {row.preset} by {rate.source}, {consequence}",)
    try:
        return catalog.find(row.preset).link, ()
    except UnknownPreset:
        return NO_WIRE, (f"the run's preset {row.preset} no longer exists, {consequence}",)
