"""The presets that this person has: linkgauge's own, and those in the configuration directory."""

from ...presets.catalog import Catalog, load_catalog
from ..text.numbers import sanitize
from .config import presets_dir


def load_presets() -> Catalog:
    """Return every preset there is; what could not be used of a person's own is in its `problems`."""
    return load_catalog([presets_dir()])


def problem_lines(catalog: Catalog) -> list[str]:
    """Return what is wrong in files of presets, each as one harmless line: file, key, what was expected."""
    return [sanitize(str(problem)) for problem in catalog.problems]
