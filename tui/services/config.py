"""Where linkgauge keeps what it keeps, and looks for what a person wrote for it."""

import os
from pathlib import Path
from typing import Final

DATA_DIR_VARIABLE: Final = "LINKGAUGE_DATA_DIR"
CONFIG_DIR_VARIABLE: Final = "LINKGAUGE_CONFIG_DIR"


def data_dir() -> Path:
    """Return the directory of the run log: the platform's own, or what LINKGAUGE_DATA_DIR names.

    It is not made here: who only reads must leave no trace.
    """
    named = _named_by(DATA_DIR_VARIABLE)
    if named is not None:
        return named
    from platformdirs import user_data_path

    return user_data_path("linkgauge", appauthor=False)


def config_dir() -> Path:
    """Return the directory of what a person set: the platform's own, or what LINKGAUGE_CONFIG_DIR names."""
    named = _named_by(CONFIG_DIR_VARIABLE)
    if named is not None:
        return named
    from platformdirs import user_config_path

    return user_config_path("linkgauge", appauthor=False)


def presets_dir() -> Path:
    """Return the directory of a person's own presets, which need not exist: `presets` in the configuration's."""
    return config_dir() / "presets"


def _named_by(variable: str) -> Path | None:
    named = os.environ.get(variable)
    return Path(named).expanduser().absolute() if named else None
