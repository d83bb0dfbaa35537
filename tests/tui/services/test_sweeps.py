"""Sweeps: their definition is stored with the options of the link."""

import json
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.presets.wire import Variant
from linkgauge.tui.services.sweeps import find_sweep, save_sweep

from ..sweep_example import SWEEP


def test_a_sweep_is_saved_with_the_options_of_its_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone on with, it is held against the same; one that was kept without options has none."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))
    link = Variant(ip=6, mtu_bytes=9_000, tunnel="vxlan", timestamps=True)
    save_sweep(SWEEP, link)
    assert find_sweep("sweep-a") == (SWEEP, link)
    path = tmp_path / "sweeps" / "sweep-a.json"
    kept = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**kept, "link_options": {**kept["link_options"], "ip": True}}), encoding="utf-8")
    with pytest.raises(RunLogError, match="one of 4, 6"):
        find_sweep("sweep-a")
    del kept["link_options"]
    path.write_text(json.dumps(kept), encoding="utf-8")
    assert find_sweep("sweep-a") == (SWEEP, Variant())
