"""The user's presets and preferences for the commands, with warnings about bad ones on stderr."""

from ...presets.catalog import Catalog
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..services.config import config_dir
from ..services.preferences import FILE_NAME, read_preferences
from ..services.user_presets import load_presets, problem_lines
from ..text.numbers import sanitize
from .output import print_stderr


def load_catalog_with_warnings() -> Catalog:
    """Return the built-in and the user's presets; print a warning for each that cannot be used."""
    catalog = load_presets()
    for line in problem_lines(catalog):
        print_stderr(line)
    return catalog


def read_pass_mark() -> float:
    """Return the pass mark of the preferences, which the app uses too; print it where it is not the default."""
    loaded = read_preferences(config_dir())
    for problem in loaded.problems:
        print_stderr(sanitize(problem))
    pass_mark = loaded.preferences.pass_mark
    if pass_mark != DEFAULT_PASS_PERCENT:
        print_stderr(
            f"the pass mark is {pass_mark:g} %, as kept in {config_dir() / FILE_NAME}; --pass-mark gives another"
        )
    return pass_mark
