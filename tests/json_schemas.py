"""The shipped JSON Schemas, as validators."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "engine" / "results" / "schemas"


@cache
def validator(name: str) -> Any:
    """Return a validator that also refuses keys which the schema does not describe. Skips without jsonschema."""
    jsonschema: Any = pytest.importorskip("jsonschema")
    referencing: Any = pytest.importorskip("referencing")
    schemas = {path.name: _close(json.loads(path.read_text(encoding="utf-8"))) for path in FOLDER.glob("*.json")}
    resources = [(schema["$id"], referencing.Resource.from_contents(schema)) for schema in schemas.values()]
    registry = referencing.Registry().with_resources(resources)
    kind = jsonschema.Draft202012Validator
    kind.check_schema(schemas[name])
    return kind(schemas[name], registry=registry)


def check(name: str, document: Any) -> None:
    """Validate a document."""
    errors = sorted(validator(name).iter_errors(document), key=str)
    assert not errors, "\n".join(f"{error.json_path}: {error.message[:300]}" for error in errors[:5])


def _close(part: Any) -> Any:
    """Return a schema whose objects have no further keys."""
    if isinstance(part, list):
        return [_close(item) for item in part]
    if not isinstance(part, dict):
        return part
    closed = {key: _close(value) for key, value in part.items()}
    return closed | {"additionalProperties": False} if isinstance(part.get("required"), list) else closed
