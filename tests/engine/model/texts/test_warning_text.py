"""The sentences of warnings and of the end of a run."""

import ast
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from string import Formatter

import linkgauge
import pytest
from linkgauge.engine.model.run_end import EndText
from linkgauge.engine.model.texts.warning_text import WarningText

PACKAGE = Path(linkgauge.__file__).parent


def placeholders(template: str) -> set[str]:
    """Return the names of the values that a template needs."""
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def uses(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """Yield each template that a module uses directly, with the names of the values passed to its `format`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            owner, member, action = node.value.value, node.value.attr, node.attr
            if isinstance(owner, ast.Name) and owner.id in {"WarningText", "EndText"} and action == "value":
                yield f"{owner.id}.{member}", set()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            text = ast.unparse(node.func.value)
            if text.startswith(("WarningText.", "EndText.")):
                yield text, {keyword.arg or "" for keyword in node.keywords}


@pytest.mark.every
def test_every_use_of_a_sentence_passes_exactly_its_values() -> None:
    """A value that is missing would end a run, and only when its sentence is needed."""
    known = {f"{kind.__name__}.{member.name}": member.value for kind in (WarningText, EndText) for member in kind}
    paths = [path for room in ("engine", "mesh", "presets", "tui") for path in (PACKAGE / room).rglob("*.py")]
    all_uses = [use for path in paths for use in uses(ast.parse(path.read_text(encoding="utf-8")))]
    assert len(all_uses) > 15
    for name, values in all_uses:
        assert values == placeholders(known[name]), name


@pytest.mark.parametrize("kind", [WarningText, EndText])
def test_no_two_codes_share_a_template(kind: type[StrEnum]) -> None:
    """An enumeration turns the second into an alias of the first."""
    assert len(list(kind)) == len(kind.__members__)
