"""The ratios of a benchmark as a picture: one interval for each comparison."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

_OURS, _THEIRS = "#2563a8", "#b4543a"


def draw(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Write a PNG of every row with a ratio and its interval, on a logarithmic axis."""
    compared = [row for row in rows if row["ratio"]]
    figure: Any = Figure(figsize=(10, 1.2 + 0.36 * len(compared)), layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(1.0, color="#888888", linewidth=1)
    for y, row in enumerate(compared):
        ratio, low, high = (float(row[name]) for name in ("ratio", "ratio_low", "ratio_high"))
        color = _OURS if ratio >= 1 else _THEIRS
        axes.plot([low, high], [y, y], color=color, linewidth=2, solid_capstyle="butt")
        axes.plot([ratio], [y], marker="o", color=color)
        axes.annotate(f"{ratio:.2f}", (high, y), (6, -3), textcoords="offset points", fontsize=8, color=color)
    names = [f"{row['case']}: against {row['entry']}" for row in compared]
    axes.set_yticks(range(len(compared)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log", base=2)
    ticks = [0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("linkgauge's rate to the other's; line: 95 % bootstrap interval")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, dpi=120)
