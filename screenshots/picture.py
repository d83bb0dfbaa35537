"""A screen as SVG and as PNG, and several as a GIF that moves, beside this file."""

from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from PIL import Image
from resvg_py import svg_to_bytes

HERE: Final = Path(__file__).parent
FONTS: Final = ("DejaVu Sans Mono", "Fira Code", "Liberation Mono", "Menlo", "Consolas")


_FILM_WIDTH: Final = 988  # pixels: two thirds of a PNG
_FILM_COLOURS: Final = 128
_LAST_FRAME_MS: Final = 5_000  # the result is read
_MOST_FILM_BYTES: Final = 1 << 20

_taken: Final[dict[Path, str]] = {}
_films: Final[dict[Path, list[tuple[str, int]]]] = {}


def take(app: Any, name: str) -> None:
    """Take the picture of an app. `write` draws it later: drawing takes a second, which a run would notice."""
    _taken[HERE / f"{name}-{app.size.width}x{app.size.height}.png"] = app.export_screenshot(title="linkgauge")


def film(app: Any, name: str, shown_ms: int) -> None:
    """Take the next frame of a picture that moves, and say how long it is shown. `write` draws it later."""
    path = HERE / f"{name}-{app.size.width}x{app.size.height}.gif"
    _films.setdefault(path, []).append((app.export_screenshot(title="linkgauge"), shown_ms))


def discard() -> None:
    """Forget the pictures that are not written yet."""
    _taken.clear()
    _films.clear()


def write() -> None:
    """Write the pictures; as SVG if no font draws a PNG."""
    for path, svg in _taken.items():
        png = to_png(svg)
        if png is not None:
            path.write_bytes(png)
            print(path.name)
        else:
            path.with_suffix(".svg").write_text(svg, encoding="utf-8")
            print(f"{path.with_suffix('.svg').name}: no monospaced font was found for a PNG")
    _taken.clear()
    for path, frames in _films.items():
        _write_film(path, frames)
    _films.clear()


def _write_film(path: Path, frames: list[tuple[str, int]]) -> None:
    """Write frames as a GIF of at most 1 MiB, all with the colours of the first, the middle and the last one."""
    images: list[Image.Image] = []
    for svg, _ in frames:
        png = to_png(svg, width=_FILM_WIDTH)
        if png is None:
            print(f"{path.name}: no monospaced font was found")
            return
        images.append(Image.open(BytesIO(png)).convert("RGB"))
    width, height = images[0].size
    some = Image.new("RGB", (width, 3 * height))
    for number, image in enumerate((images[0], images[len(images) // 2], images[-1])):
        some.paste(image, (0, number * height))
    palette = some.quantize(_FILM_COLOURS, dither=Image.Dither.NONE)
    first, *others = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    durations = [*(shown_ms for _, shown_ms in frames[:-1]), _LAST_FRAME_MS]
    data = BytesIO()
    first.save(data, "GIF", save_all=True, append_images=others, duration=durations, loop=0, optimize=True)
    if data.tell() > _MOST_FILM_BYTES:
        print(f"{path.name}: {data.tell():,} bytes are more than {_MOST_FILM_BYTES:,}; film fewer frames")
        return
    path.write_bytes(data.getvalue())
    print(path.name)


def to_png(svg: str, width: int | None = None) -> bytes | None:
    """Return the picture as PNG, of a width in pixels; None if no font draws its text.

    Without a font the drawing has no text at all, and is told by being the same for other text.
    """
    font = _drawing_font()
    return None if font is None else bytes(svg_to_bytes(svg_string=svg, monospace_family=font, width=width))


@cache
def _drawing_font() -> str | None:
    """Return the first font that draws text here."""
    blank = svg_to_bytes(svg_string=_probe_svg(""))
    for font in FONTS:
        if svg_to_bytes(svg_string=_probe_svg("linkgauge"), monospace_family=font) != blank:
            return font
    return None


def _probe_svg(text: str) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="40">'
        f'<text x="5" y="30" font-family="monospace" font-size="20">{text}</text></svg>'
    )
