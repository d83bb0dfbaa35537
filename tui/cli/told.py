"""The presets of this person, for the commands: what is wrong with them is told on stderr."""

from ...presets.catalog import Catalog
from ..known import known_presets, problem_lines
from .output import say


def told_catalog() -> Catalog:
    """Return every preset there is, and tell each problem: none of them keeps the rest from being used."""
    catalog = known_presets()
    for line in problem_lines(catalog):
        say(line)
    return catalog
