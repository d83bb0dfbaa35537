"""HTML pages from Jinja2 templates.

Templates escape every value. Only figures, which are made here, go in as they are. Jinja2 is imported only when a
page is rendered: it takes 35 ms, which no other command should wait for.
"""

from pathlib import Path
from typing import Any, Final

from ... import __version__
from ...engine.host.saved_files import written_whole
from ...engine.model.errors import RunLogError
from ..words.redaction import REDACTION
from ..words.table import Strong

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
    environment.tests["strong"] = _is_strong
    return environment.get_template(template).render(values, version=__version__)


def write_page(path: Path, page: str) -> None:
    """Write a page in one step. Raises RunLogError."""
    try:
        with written_whole(path) as stream:
            stream.write(REDACTION.text(page))
    except OSError as error:
        raise RunLogError(f"cannot write {path}: {error.strerror or error}") from error


def _is_strong(value: Any) -> bool:
    return isinstance(value, Strong)
