"""Fill in the templates of packages: @NAME@ stands for a value."""

from pathlib import Path


def fill_template(path: Path, values: dict[str, str]) -> str:
    """Return the text of a template with its values in place."""
    text = path.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
