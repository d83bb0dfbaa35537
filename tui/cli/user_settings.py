"""What this person keeps for the commands, presets and settings: what is wrong with it is told on stderr."""

from ...presets.catalog import Catalog
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..services.config import config_dir
from ..services.preferences import FILE_NAME, read_preferences
from ..services.user_presets import load_presets, problem_lines
from ..text.numbers import sanitize
from .output import print_stderr


def load_catalog_with_warnings() -> Catalog:
    """Return every preset there is, and tell each problem: none of them keeps the rest from being used."""
    catalog = load_presets()
    for line in problem_lines(catalog):
        print_stderr(line)
    return catalog


def read_pass_mark() -> float:
    """Return the pass mark that is kept, the same as the app judges by; tell one that is not the usual."""
    found = read_preferences(config_dir())
    for problem in found.problems:
        print_stderr(sanitize(problem))
    mark = found.preferences.pass_mark
    if mark != DEFAULT_PASS_PERCENT:
        print_stderr(
            f"the pass mark is {mark:g} %, as kept in {config_dir() / FILE_NAME}; --pass-mark gives another"
        )
    return mark
