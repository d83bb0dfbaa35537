"""The preset and the pass mark of a test: as typed, as in the user's settings, or by both ends' interfaces."""

from ...engine.model.errors import UsageError
from ...presets.auto_select import AUTO
from ...presets.catalog import Catalog
from ...presets.expectation import check_variant
from ...presets.preset import Preset
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..session.settings_file import read_settings
from ..session.storage import config_dir
from ..session.user_presets import load_presets, problem_lines
from .output import print_stderr


def load_catalog_with_warnings() -> Catalog:
    """Return the built-in and the user's presets; print a warning for each that cannot be used."""
    catalog = load_presets()
    for line in problem_lines(catalog):
        print_stderr(line)
    return catalog


def read_pass_mark() -> float:
    """Return the pass mark of the settings, which the app uses too; print it if it is not the default."""
    settings = read_settings(config_dir())
    pass_mark: float = settings.value("pass_mark")
    if pass_mark != DEFAULT_PASS_PERCENT:
        source = settings.values["pass_mark"].source
        print_stderr(f"pass mark {pass_mark:g} % from {source}; --pass-mark gives another")
    return pass_mark


def find_preset(preset_id: str | None, catalog: Catalog | None = None) -> Preset | Catalog | None:
    """Return the preset of that id; for `auto` the catalog, for `choose_preset` later."""
    if preset_id is None:
        return None
    catalog = catalog or load_catalog_with_warnings()
    return catalog if preset_id == AUTO else catalog.find(preset_id)


def check_link_options(preset: Preset | Catalog | None, variant: Variant) -> None:
    """Raise UsageError for link options without a preset, PlanError for impossible ones."""
    if preset is None and variant != DEFAULT_VARIANT:
        raise UsageError(
            f"link options ({variant.description}) need a preset; give --preset auto, or a preset's id"
        )
    if isinstance(preset, Preset):
        check_variant(preset, variant)
