"""HTML pages from Jinja2 templates, and the paths that they can be written to.

Templates escape every value. Only figures, which are made here, go in as they are. Jinja2 is imported only when a
page is rendered: it takes 35 ms, which no other command should wait for.
"""

from pathlib import Path
from typing import Any, Final

from ... import __version__
from ...engine.host.saved_files import check_output_path
from ...engine.model.errors import PlanError, require_extra

_TEMPLATES: Final = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """Return the page of a template. A value that the template lacks raises UndefinedError."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(template).render(values, version=__version__)


def check_report_path(path: Path) -> Path:
    """Return the path of a report. Called before anything runs.

    Raises:
        ExtraMissing: The packages that make a report are not installed.
        PlanError: No report can be written there.
    """
    require_report_packages()
    if path.suffix.lower() not in {".html", ".htm"}:
        raise PlanError("report", path, "name a file that ends in .html")
    check_output_path("report", path)
    return path


def require_report_packages() -> None:
    """Raise ExtraMissing if the packages that make a report are not installed: they are six times a test's."""
    require_extra("a report needs Jinja2 and matplotlib", "report", "jinja2", "matplotlib")
