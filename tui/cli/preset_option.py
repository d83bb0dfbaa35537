"""The preset and the pass mark of a test: as typed, as in the user's settings, or by both ends' interfaces."""

from ...presets.auto_select import AUTO
from ...presets.catalog import Catalog
from ...presets.expectation import check_variant
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ...presets.wire import Variant
from ..session.preferences import FILE_NAME, read_preferences
from ..session.storage import config_dir
from ..session.user_presets import load_presets, problem_lines
from ..words.numbers import sanitize
from .output import print_stderr


def load_catalog_with_warnings() -> Catalog:
    """Return the built-in and the user's presets; print a warning for each that cannot be used."""
    catalog = load_presets()
    for line in problem_lines(catalog):
        print_stderr(line)
    return catalog


def read_pass_mark() -> float:
    """Return the pass mark of the preferences, which the app uses too; print it if it is not the default."""
    loaded = read_preferences(config_dir())
    for problem in loaded.problems:
        print_stderr(sanitize(problem))
    pass_mark = loaded.preferences.pass_mark
    if pass_mark != DEFAULT_PASS_PERCENT:
        print_stderr(f"pass mark {pass_mark:g} % from {config_dir() / FILE_NAME}; --pass-mark gives another")
    return pass_mark


def find_preset(preset_id: str | None, catalog: Catalog | None = None) -> Preset | Catalog | None:
    """Return the preset of that id; for `auto` the catalog, for `choose_preset` later."""
    if preset_id is None:
        return None
    catalog = catalog or load_catalog_with_warnings()
    return catalog if preset_id == AUTO else catalog.find(preset_id)


def check_link_options(preset: Preset | Catalog | None, variant: Variant) -> None:
    """Raise PlanError for link options without a preset, and for impossible ones."""
    if not isinstance(preset, Catalog):
        check_variant(preset, variant)
