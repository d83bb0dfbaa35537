"""The validation of a preset and of a document's sweep, beyond the types of preset.py.

A rate must refer to one number of its preset. The number must not be marked as a slip, and must have the unit of a
rate. Each fault is a DecodeError with its key and the expected value.
"""

import re
from collections import Counter
from typing import Final, cast

from ..engine.model.errors import DecodeError, PlanError
from ..engine.model.plan import MAX_BLOCK_BYTES, MAX_SESSIONS, MAX_WINDOW_BYTES, MIN_BLOCK_BYTES, MIN_WINDOW_BYTES
from ..engine.model.serialization import decode, encode
from .preset import (
    MAX_MTU_BYTES,
    MIN_MTU_BYTES,
    DocumentSweep,
    Preset,
    Rate,
    Source,
    as_bit_s,
    as_transactions_s,
)
from .wire import derive

ID_FORM: Final = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*", re.ASCII)
_RESERVED: Final = ("auto",)  # `check auto` selects a preset
MAX_ID: Final = 64
_MAX_BIT_S: Final = 10**15  # a thousand times the fastest link; a total of more would not fit into 64 bits


def read_preset(source: Source, table: object) -> Preset:
    """Return the preset of a TOML table; raise DecodeError if it is invalid."""
    if not isinstance(table, dict):
        raise DecodeError("", "a table", table)
    if "source" in table:
        raise DecodeError("source", "it once, at the top of the file", "it in a preset")
    preset = decode(Preset, {**cast("dict[str, object]", table), "source": encode(source)})
    _check_preset(preset)
    _check_tables(preset)
    for number, mark in enumerate(preset.marks, start=1):
        if preset.value_of(mark) is None:
            raise DecodeError(f"marks[{number}]", "a table, row and column of this preset", mark.column)
    for number, rate in enumerate(preset.rates, start=1):
        _check_rate(preset, rate, f"rates[{number}]")
    _check_computed(preset)
    return preset


def read_sweep(table: object) -> DocumentSweep:
    """Return the sweep of a TOML table; raise DecodeError if it is invalid."""
    sweep = decode(DocumentSweep, table)
    check_id(sweep.id)
    if not sweep.message_bytes or not sweep.window_bytes:
        raise DecodeError("", "message_bytes and window_bytes, one or more of each", "none")
    for size in sweep.message_bytes:
        if not MIN_BLOCK_BYTES <= size <= MAX_BLOCK_BYTES:
            raise DecodeError("message_bytes", f"{MIN_BLOCK_BYTES} to {MAX_BLOCK_BYTES}", size)
    for window in sweep.window_bytes:
        _check_window(window, "window_bytes")
    return sweep


def check_id(preset_id: str) -> str:
    """Return the id; raise DecodeError if it is unfit for a command line or a CSV file."""
    if not ID_FORM.fullmatch(preset_id) or preset_id in _RESERVED or len(preset_id) > MAX_ID:
        raise DecodeError("id", "small letters and digits, joined by - or ., and not auto", preset_id)
    return preset_id


def _check_preset(preset: Preset) -> None:
    check_id(preset.id)
    for key in ("name", "family"):
        if not getattr(preset, key).strip():
            raise DecodeError(key, "some text", getattr(preset, key))
    link = preset.link
    if link.line_rate_bit_s is not None and not 1 <= link.line_rate_bit_s <= _MAX_BIT_S:
        raise DecodeError("link.line_rate_bit_s", f"1 to {_MAX_BIT_S}", link.line_rate_bit_s)
    if link.mtu_bytes is not None and not MIN_MTU_BYTES <= link.mtu_bytes <= MAX_MTU_BYTES:
        raise DecodeError("link.mtu_bytes", f"{MIN_MTU_BYTES} to {MAX_MTU_BYTES}", link.mtu_bytes)
    if preset.suggested_window_bytes is not None:
        _check_window(preset.suggested_window_bytes, "suggested_window_bytes")


def _check_window(window: int, where: str) -> None:
    if not MIN_WINDOW_BYTES <= window <= MAX_WINDOW_BYTES:
        raise DecodeError(where, f"{MIN_WINDOW_BYTES} to {MAX_WINDOW_BYTES}", window)


def _check_tables(preset: Preset) -> None:
    for table in preset.tables:
        for row in table.rows:
            if len(row.values) != len(table.columns):
                key = f"tables.{table.table}.{row.row}"
                raise DecodeError(key, f"{len(table.columns)} values", len(row.values))
            for value in row.values:
                if abs(value) > _MAX_BIT_S:
                    key = f"tables.{table.table}.{row.row}"
                    raise DecodeError(key, f"numbers up to {_MAX_BIT_S:.0e}", value)
    names = Counter((number.table, number.row, number.column) for number in preset.document_values)
    for name, times in names.items():
        if times > 1:
            raise DecodeError("tables." + ".".join(name), "it once", f"it {times} times")


def _check_rate(preset: Preset, rate: Rate, where: str) -> None:
    number = preset.value_of(rate)
    if number is None:
        reference = ", ".join(filter(None, (rate.table, rate.row, rate.column)))
        raise DecodeError(where, "the table, row and column of one number of this preset", reference)
    bit_s = as_bit_s(number)
    amount = as_transactions_s(number) if bit_s is None else bit_s
    if amount is None:
        raise DecodeError(f"{where}.column", "a column in mbit_s, gbit_s, mib_s or transactions_s", rate.column)
    if not 0 < amount <= _MAX_BIT_S:
        raise DecodeError(where, f"a rate above 0 and up to {_MAX_BIT_S:.0e} bit/s", number.value)
    if preset.erratum_of(number) is not None:
        raise DecodeError(where, "a number that is not marked as a slip", rate.column)
    if not 1 <= rate.sessions <= MAX_SESSIONS:
        raise DecodeError(f"{where}.sessions", f"1 to {MAX_SESSIONS}", rate.sessions)
    for key in ("cpu_column", "cost_column"):
        column = getattr(rate, key)
        if column is not None and preset.find_value(rate.table, rate.row, column) is None:
            raise DecodeError(f"{where}.{key}", "a column of the same row", column)
    base = rate.baseline_row
    if base is not None and preset.find_value(rate.table, base, rate.column) is None:
        raise DecodeError(f"{where}.baseline_row", "a row with the same column", base)


def _check_computed(preset: Preset) -> None:
    for flow in preset.computed:
        try:
            derived = derive(preset.link, flow)
        except PlanError as error:
            raise DecodeError("link", "a link that packets fit", error) from error
        if derived is None or preset.link.duplex != "full":
            raise DecodeError("computed", "a full duplex link with framing, line_rate_bit_s and mtu_bytes", flow)
