"""A kept run made into a preset: a file in the directory of a person's own presets."""

import os
from dataclasses import dataclass
from pathlib import Path

from ...engine.model.errors import UnknownPreset, UsageError
from ...engine.model.workload import Workload
from ...engine.results.run_log import RunRecord
from ...engine.results.summary import Summary
from ...presets.baseline import NO_WIRE, baseline_toml, check_preset_id
from ...presets.catalog import Catalog, load_catalog
from ...presets.expectation import WIRE_MODEL
from ...presets.preset import LinkSpec
from .config import presets_dir
from .run_log_access import find_run, open_run_list
from .stored_run import load_stored_run
from .user_presets import load_presets


@dataclass(frozen=True, slots=True)
class NewPreset:
    """A preset that was made: its file, the command that uses it, and what there is to say of it."""

    path: Path
    check_command: str
    notices: tuple[str, ...]


def make_preset(preset_id: str, run: str, *, force: bool) -> NewPreset:
    """Write a preset that expects what a run measured.

    Raises PlanError for an id that cannot be one, UsageProblem where it is taken or the run cannot serve,
    and OSError where the file cannot be written.
    """
    check_preset_id(preset_id)
    path = presets_dir() / f"{preset_id}.toml"
    _check_free(preset_id, path, force=force)
    with open_run_list() as log:
        row = find_run(log, run)
        if row.is_running:
            raise UsageError(f"run {row.run_id} still goes on: make a preset of it when it has ended")
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
        suggested_window_bytes=summary.plan.settings.window_bytes,
    )
    _write(path, text)
    about_it = [str(problem) for problem in load_presets().problems if problem.path == str(path)]
    workload = summary.plan.workload
    carried = "" if workload is Workload.STREAM else f" --workload {workload}"
    return NewPreset(path, f"check {preset_id} {row.peer}{carried}", (*notices, *about_it))


def _check_free(preset_id: str, path: Path, *, force: bool) -> None:
    """Refuse an id that is linkgauge's own, or another file's, or this file's where it is not to be replaced."""
    if any(preset.id == preset_id for preset in load_catalog().presets):
        raise UsageError(f"preset {preset_id} is one of linkgauge's own: give another name")
    if os.path.lexists(path):
        if not force:
            raise UsageError(f"{path} exists already: give another name, or --force to replace it")
    elif any(preset.id == preset_id for preset in load_presets().presets):
        raise UsageError(f"a file in {path.parent} has a preset {preset_id} already: give another name")


def _link_of(row: RunRecord, summary: Summary, catalog: Catalog) -> tuple[LinkSpec, tuple[str, ...]]:
    """Return what is known of the run's link; where that is nothing, with the reason for it."""
    if not row.preset:
        return NO_WIRE, ()
    left_out = "so the link's facts are left out; [preset.link] in the file may be filled in"
    expected = summary.expectation
    for one in (expected.out, expected.in_, expected.total):
        if one is not None and one.basis == "computed" and one.source != WIRE_MODEL:
            return NO_WIRE, (f"the run was held against {row.preset} by {one.source}, {left_out}",)
    try:
        return catalog.find(row.preset).link, ()
    except UnknownPreset:
        return NO_WIRE, (f"the run's preset {row.preset} is not known any more, {left_out}",)


def _write(path: Path, text: str) -> None:
    """Write the file whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
