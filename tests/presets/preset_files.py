"""Files of the user's own presets."""

from pathlib import Path

from linkgauge.presets.catalog import Catalog, load_catalog

HEAD = '[source]\nid = "mine"\ntitle = "my notes"\n'
GOOD = '[[preset]]\nid = "{id}"\nname = "Mine"\nfamily = "Ethernet"\nlink = {{ framing = "ethernet" }}\n'


def read(directory: Path, text: str, name: str = "mine.toml") -> Catalog:
    """Load the catalogue with one file of the user beside it."""
    (directory / name).write_text(text, encoding="utf-8")
    return load_catalog([directory])


def own(catalog: Catalog) -> list[str]:
    """Return the ids of the user's own presets."""
    return [p.id for p in catalog.presets if p.source.id == "mine"]
