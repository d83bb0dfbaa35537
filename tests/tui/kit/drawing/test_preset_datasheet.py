"""A preset's sheet in a narrow terminal."""

import subprocess
import sys

from rich.cells import cell_len

DEADLINE_S = 30.0


def test_every_number_of_the_sheet_is_whole_in_a_narrow_terminal() -> None:
    """Columns that do not fit beside the others go below them."""
    code = (
        "import sys; from rich.console import Console; from linkgauge.presets.catalog import load_catalog;"
        "from linkgauge.presets.datasheet import build_sheet; "
        "from linkgauge.tui.kit.drawing.preset_datasheet import sheet_parts;"
        "preset = load_catalog().find('zvm-qdio-1500');"
        "Console(width=48, highlight=False).print(*sheet_parts(build_sheet(preset)), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    from linkgauge.presets.catalog import load_catalog

    printed = set(done.stdout.replace("\u00a0", "").split())
    assert {f"{fact.value:.10g}" for fact in load_catalog().find("zvm-qdio-1500").document_values} <= printed
    assert max(map(cell_len, done.stdout.splitlines())) <= 48
