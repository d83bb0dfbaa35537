"""Which runs are pruned or thinned: old ones, the oldest of a log that is too large, and none with a name."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from linkgauge.engine.model.events import Ended, Warned
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.run_log import RunLog
from linkgauge.tui.session.pruning import RunChooser, thin_old_runs

from ...engine.results.day_of_samples import samples
from ...engine.results.log_entries import ENDED, STARTED
from ...engine.results.log_lock import hold_lock

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
DAYS = (200, 100, 90, 10, 1)


def _fill(log: RunLog) -> list[str]:
    """Save a run of each age, about 25 kB large; return their ids, the oldest first."""
    run_ids = [f"{NOW - timedelta(days=days, minutes=1):%Y%m%d-%H%M%S}-aaaa" for days in DAYS]
    for place, run_id in enumerate(run_ids):
        log.begin(run_id, "", "h:1", label="before" if place == 1 else None)
        for number in range(60):
            log.append_event(run_id, Warned(" ".join(str(hash((place, number, k))) for k in range(100))))
        log.append_event(run_id, Ended(RunEnd(Reason.COMPLETED, "")))
        log.finish(run_id, "none", {})
    log.begin("20200101-000000-live", "", "h:1")
    assert log.flush()
    return run_ids


@pytest.mark.parametrize(
    ("keep_days", "kilobytes", "with_named", "chosen", "named"),
    [
        (90, None, False, [0, 2], 1),
        (90, None, True, [0, 1, 2], 0),
        (365, None, False, [], 0),
        (None, 100_000, False, [], 0),
        (None, 0, False, [0, 2, 3, 4], 1),
        (90, 0, True, [0, 1, 2, 3, 4], 0),
    ],
)
def test_the_oldest_runs_are_chosen(
    tmp_path: Path, keep_days: int | None, kilobytes: int | None, with_named: bool, chosen: list[int], named: int
) -> None:
    """Neither one with a label, unless that is requested, nor one that is still running, however old it is."""
    with RunLog.open(tmp_path) as log:
        run_ids = _fill(log)
        keep = None if keep_days is None else timedelta(days=keep_days)
        max_bytes = None if kilobytes is None else 1000 * kilobytes
        plan = RunChooser(log, NOW, with_named).deletion(keep, max_bytes)
        assert list(plan.run_ids) == [run_ids[place] for place in chosen]
        assert plan.named == named
        assert (plan.size_bytes > 0) == bool(chosen)


def test_no_more_runs_are_chosen_than_the_size_needs(tmp_path: Path) -> None:
    """And after their deletion the log is as small as requested."""
    with RunLog.open(tmp_path) as log:
        run_ids = _fill(log)
        most = log.used_bytes() - 100_000
        plan = RunChooser(log, NOW, with_named=True).deletion(None, most)
        assert 1 < len(plan.run_ids) < len(run_ids)
        log.delete_all(plan.run_ids)
        assert log.used_bytes() <= most


SET_BACK = datetime(1970, 1, 1, 0, 5, tzinfo=UTC)
YEARS = timedelta(days=10 * 365)


def _save_runs(log: RunLog, starts: list[datetime]) -> list[str]:
    run_ids = [f"{start:%Y%m%d-%H%M%S}-{place:04}" for place, start in enumerate(starts)]
    for run_id in run_ids:
        log.begin(run_id, "", "h:1")
        log.append_event(run_id, ENDED)
        log.finish(run_id, "none", {})
    assert log.flush()
    return run_ids


@pytest.mark.parametrize(
    ("starts", "now", "deleted", "uncertain"),
    [
        ([NOW - YEARS, NOW - timedelta(days=91), NOW], NOW, [0, 1], []),
        ([NOW - timedelta(days=91), SET_BACK, NOW], NOW, [0], []),
        ([NOW - timedelta(days=1), SET_BACK, SET_BACK, NOW], NOW, [], []),
        ([SET_BACK, SET_BACK, NOW - timedelta(minutes=1)], NOW, [], []),
        ([SET_BACK], NOW, [], []),
        ([NOW - timedelta(days=91), NOW + YEARS, NOW - timedelta(days=1)], NOW, [0], []),
        ([NOW + YEARS, NOW + timedelta(minutes=1)], NOW, [], []),
        ([NOW - timedelta(days=60), NOW - timedelta(days=1)], NOW + YEARS, [], [0, 1]),
        ([NOW - timedelta(days=60), NOW - timedelta(days=1), NOW + YEARS], NOW + YEARS, [], [0, 1]),
        ([NOW - timedelta(days=91), NOW + YEARS], NOW + YEARS + timedelta(days=91), [0, 1], []),
        ([NOW - timedelta(days=1), NOW], SET_BACK, [], []),
    ],
    ids=[
        "a pause of years",
        "set back for one run",
        "set back for two runs",
        "not set at first",
        "never set",
        "ahead for one run",
        "ahead until now",
        "ahead from now on",
        "ahead since the last run",
        "ahead for longer than runs stay",
        "not set now",
    ],
)
def test_a_clock_that_is_wrong_deletes_no_run_by_itself(
    tmp_path: Path, starts: list[datetime], now: datetime, deleted: list[int], uncertain: list[int]
) -> None:
    """Runs older than 90 days go, by the order of runs too; runs of an uncertain age only if the user agrees."""
    with RunLog.open(tmp_path) as log:
        run_ids = _save_runs(log, starts)
        for with_uncertain in (False, True):
            plan = RunChooser(log, now, with_uncertain=with_uncertain).deletion(timedelta(days=90), None)
            chosen = sorted([*deleted, *uncertain]) if with_uncertain else deleted
            assert list(plan.run_ids) == [run_ids[place] for place in chosen]
            assert plan.uncertain == (0 if with_uncertain else len(uncertain))
            assert (plan.pause is not None) == bool(uncertain)
        assert list(RunChooser(log, now).deletion(timedelta(), None).run_ids) == run_ids


def _save_long_run(log: RunLog, age: timedelta, label: str | None = None) -> str:
    """Save a run of 62 s; return its id."""
    run_id = f"{NOW - age:%Y%m%d-%H%M%S}-long"
    log.begin(run_id, "", "h:1", label)
    started = f"{NOW - age:%Y-%m-%dT%H:%M:%SZ}"
    for event in (replace(STARTED, started_utc=started), *samples(496), ENDED):
        log.append_event(run_id, event)
    log.finish(run_id, "none", {})
    return run_id


def _counts(folder: Path, run_ids: list[str]) -> list[int]:
    with RunLog.open(folder, create=False) as log:
        return [len(list(log.events(run_id))) for run_id in run_ids]


@pytest.mark.every
@pytest.mark.parametrize(
    ("setting", "counts"),
    [
        ("", [498, 498, 498, 498]),
        ('thin_after = "4w"', [126, 126, 498, 498]),
    ],
)
def test_old_runs_are_thinned_as_the_preference_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, counts: list[int]
) -> None:
    """Without one none are. A run with a label keeps its samples; what a call does not reach the next one does."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "settings.toml").write_text(setting)
    with RunLog.open(tmp_path) as log:
        run_ids = [_save_long_run(log, timedelta(days=days)) for days in (90, 40, 9)]
        run_ids.append(_save_long_run(log, timedelta(days=60), "before the new cable"))
    deadline = time.monotonic() + 20
    while True:
        thin_old_runs(lambda: NOW)
        found = _counts(tmp_path, run_ids)
        if found == counts or time.monotonic() > deadline:
            break
        assert found[0] <= found[1]  # the oldest first
    assert found == counts


@pytest.mark.parametrize("now", [NOW + YEARS, NOW], ids=["the clock is ahead", "the run has no date"])
def test_a_clock_that_is_wrong_thins_no_new_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: datetime
) -> None:
    """No user is asked, so the order of the runs decides."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "settings.toml").write_text('thin_after = "4w"')
    with RunLog.open(tmp_path) as log:
        run_id = _save_long_run(log, NOW - SET_BACK if now == NOW else timedelta(days=1))
    thin_old_runs(lambda: now)
    assert _counts(tmp_path, [run_id]) == [498]


def test_nothing_is_thinned_while_a_run_measures_or_the_log_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither does a log come into being."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "settings.toml").write_text('thin_after = "30d"')
    thin_old_runs(lambda: NOW)
    assert not (tmp_path / "data").exists()
    with RunLog.open(tmp_path / "data") as log:
        run_id = _save_long_run(log, timedelta(days=90))
        log.begin("20261122-115900-live", "", "h:1")
        assert log.flush()
        thin_old_runs(lambda: NOW)
        log.append_event("20261122-115900-live", ENDED)
        log.finish("20261122-115900-live", "none", {})
        assert log.flush()
        with hold_lock(log.path):
            thin_old_runs(lambda: NOW)
    assert _counts(tmp_path / "data", [run_id]) == [498]
    thin_old_runs(lambda: NOW)
    assert _counts(tmp_path / "data", [run_id]) < [498]
