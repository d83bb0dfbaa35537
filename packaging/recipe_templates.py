"""Fill in the recipes of packagers (Homebrew, Arch Linux, Nix) for the sdist of a release.

`@NAME@` in a template stands for a value. A recipe fetches the sdist from the release of its version in the
repository, and compares it with its checksum.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import hashlib
from pathlib import Path
from typing import Final

from linkgauge import __version__
from release_check import ROOT

FOLDER: Final = ROOT / "packaging" / "recipes"


def write_recipes(folder: Path, sdist: Path, repository: str) -> None:
    """Write each recipe, which begins at the repository's address."""
    checksum = hashlib.sha256(sdist.read_bytes()).hexdigest()
    values = {"VERSION": __version__, "SHA256": checksum, "REPOSITORY": repository.rstrip("/")}
    for path in FOLDER.iterdir():
        (folder / path.name).write_text(fill_template(path, values), encoding="utf-8")


def fill_template(path: Path, values: dict[str, str]) -> str:
    """Return the text of a template with its values in place."""
    text = path.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
