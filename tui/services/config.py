"""The data and configuration directories of linkgauge."""

import os
from pathlib import Path
from typing import Final

DATA_DIR_VARIABLE: Final = "LINKGAUGE_DATA_DIR"
CONFIG_DIR_VARIABLE: Final = "LINKGAUGE_CONFIG_DIR"


def data_dir() -> Path:
    """Return the directory of the run log: that of LINKGAUGE_DATA_DIR, else the platform's usual one.

    It is not created here: a command that only reads must leave no trace.
    """
    directory = _from_environment(DATA_DIR_VARIABLE)
    if directory is not None:
        return directory
    from platformdirs import user_data_path

    return user_data_path("linkgauge", appauthor=False)


def config_dir() -> Path:
    """Return the directory of preferences, keys and presets: that of LINKGAUGE_CONFIG_DIR, else the usual one."""
    directory = _from_environment(CONFIG_DIR_VARIABLE)
    if directory is not None:
        return directory
    from platformdirs import user_config_path

    return user_config_path("linkgauge", appauthor=False)


def presets_dir() -> Path:
    """Return the directory of the user's presets, `presets` in the configuration directory. It may not exist."""
    return config_dir() / "presets"


def _from_environment(variable: str) -> Path | None:
    path = os.environ.get(variable)
    return Path(path).expanduser().absolute() if path else None
