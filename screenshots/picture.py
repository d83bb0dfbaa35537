"""A screen as SVG and as PNG, beside this file."""

from pathlib import Path
from typing import Any, Final

from resvg_py import svg_to_bytes

HERE: Final = Path(__file__).parent
FONTS: Final = ("DejaVu Sans Mono", "Fira Code", "Liberation Mono", "Menlo", "Consolas")


_taken: Final[dict[Path, str]] = {}


def take(app: Any, name: str) -> None:
    """Take the picture of an app. `write` draws it later: drawing takes a second, which a run would notice."""
    _taken[HERE / f"{name}-{app.size.width}x{app.size.height}.png"] = app.export_screenshot(title="linkgauge")


def discard() -> None:
    """Forget the pictures that are not written yet."""
    _taken.clear()


def write() -> None:
    """Write the pictures; as SVG where no font draws a PNG."""
    for path, svg in _taken.items():
        png = to_png(svg)
        if png is not None:
            path.write_bytes(png)
            print(path.name)
        else:
            path.with_suffix(".svg").write_text(svg, encoding="utf-8")
            print(f"{path.with_suffix('.svg').name}: no monospaced font was found for a PNG")
    _taken.clear()


def to_png(svg: str) -> bytes | None:
    """Return the picture as PNG; None where no font draws its text.

    Without a font the drawing has no text at all, and is told by being the same for other text.
    """
    blank = svg_to_bytes(svg_string=_probe_svg(""))
    for font in FONTS:
        if svg_to_bytes(svg_string=_probe_svg("linkgauge"), monospace_family=font) != blank:
            return bytes(svg_to_bytes(svg_string=svg, monospace_family=font))
    return None


def _probe_svg(text: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="40">'
        f'<text x="5" y="30" font-family="monospace" font-size="20">{text}</text></svg>'
    )
