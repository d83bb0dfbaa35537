"""`linkgauge settings`: which settings hold, where each comes from, and a file to begin with."""

from dataclasses import dataclass

from ...session.setting_table import SETTINGS
from ..click_extension.option_fields import flag
from ..output import emit, emit_json, emit_rich
from ..output_options import json_flag


@dataclass(frozen=True, slots=True)
class SettingsOptions:
    """What is printed."""

    template: bool = flag("", "Print a settings.toml with every setting, as comments.")
    as_json: bool = json_flag()


def settings(options: SettingsOptions) -> int:
    """Show the settings that hold, and where each value comes from.

    They are the defaults of options, and the app's own. The command line comes first, then the variable, then
    settings.toml in the directory of your configuration (LINKGAUGE_CONFIG_DIR).
    """
    from ...session.settings_file import read_settings, settings_template
    from ...session.storage import config_dir

    if options.template:
        from ...kit.key_map import keys_template

        emit(f"{settings_template()}\n{keys_template()}")
        return 0
    held = read_settings(config_dir())
    if held.tables:
        from ...app.look import read_look

        read_look()
    rows = [
        (name, SETTINGS[name].usual if each.text is None else each.text, each.source)
        for name, each in held.values.items()
    ]
    rows += [
        (f"{table}.{key}", str(value), str(held.path))
        for table, values in held.tables.items()
        for key, value in values.items()
    ]
    if options.as_json:
        emit_json([{"name": name, "value": value or None, "source": source} for name, value, source in rows])
        return 0
    from ...words.numbers import sanitize
    from ...words.table import Column, Table
    from ..render.table import PrintedTable

    columns = (
        Column("setting", is_text=True, is_key=True),
        Column("value", is_text=True),
        Column("from", is_text=True),
    )
    emit_rich(PrintedTable(Table(columns, [tuple(map(sanitize, row)) for row in rows])), is_wide=True)
    return 0
