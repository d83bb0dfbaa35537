"""`linkgauge ceiling`: the highest rates of this machine, measured on its loopback."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...words import parsing
from ..click_extension.option_fields import flag, option
from ..output import PROGRAM, emit_json, emit_rich, print_stderr, write_in_background
from ..output_options import json_flag, redact_flag

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ....engine.near.ceiling import Ceiling, CeilingRate


@dataclass(frozen=True, slots=True)
class CeilingOptions:
    """How the rates are measured, and printed."""

    again: bool = flag("", "Measure again.")
    seconds: str = option("", "Duration of each run.", "-t", default="2", metavar="TIME")
    as_json: bool = json_flag()
    redact: bool = redact_flag()


def ceiling(options: CeilingOptions) -> int:
    """Measure the highest rates of this machine, without a network.

    Both ends run on its loopback, by mode, with one session and with one for each core. The result is saved until
    the kernel or the core count changes.
    """
    from ....engine.model.errors import RunLogError
    from ....engine.near.ceiling import load_ceiling, save_ceiling
    from ...session.storage import data_dir, open_data_dir

    duration_ns = parsing.duration_ns(options.seconds)
    result = None if options.again else load_ceiling(data_dir())
    if result is None:
        result = _measure(10.0 if duration_ns is None else duration_ns / 1e9)
        try:
            save_ceiling(open_data_dir(), result)
        except RunLogError as error:
            print_stderr(f"this result is not saved: {error}")
    elif not options.as_json:
        print_stderr(f"measured at {result.measured_utc}; to measure again: {PROGRAM} ceiling --again")
    if options.as_json:
        emit_json(_document(result))
    else:
        emit_rich(*_parts(result))
    return 0


def _measure(seconds: float) -> "Ceiling":
    from ....engine.host.event_loop import run
    from ....engine.near.ceiling_measurement import measure_ceiling
    from ...words import numbers

    def print_rate(rate: "CeilingRate") -> None:
        print_stderr(f"{rate.mode}, {numbers.sessions(rate.sessions)}: {numbers.rate(rate.bit_s)}")

    write_in_background()
    return run(measure_ceiling(seconds, print_rate))


def _parts(ceiling: "Ceiling") -> "list[RenderableType]":
    from rich.text import Text

    from ...words import numbers
    from ...words.table import Column, Table
    from ..render.table import PrintedTable

    machine = ceiling.machine
    cores = numbers.quantity(machine.cores, "core")
    host = f"{numbers.sanitize(machine.hostname)}, {numbers.sanitize(machine.system)}, {cores}"
    columns = (Column("mode", is_text=True), *map(Column, ("sessions", "Mb/s", "95 % from", "to")))
    rows = [
        (rate.mode, str(rate.sessions), *map(numbers.mbit, (rate.bit_s, rate.low_bit_s, rate.high_bit_s)))
        for rate in ceiling.rates
    ]
    return [
        Text(f"the ceiling of {host}, both ends on it ({ceiling.congestion or 'its own congestion control'})"),
        PrintedTable(Table(columns, rows)),
    ]


def _document(ceiling: "Ceiling") -> dict[str, Any]:
    from ....engine.results.figure_codec import DOCUMENT_VERSION, mbit

    machine = ceiling.machine
    return {
        "schema": DOCUMENT_VERSION,
        "hostname": machine.hostname,
        "system": machine.system,
        "cores": machine.cores,
        "measured_utc": ceiling.measured_utc,
        "congestion": ceiling.congestion,
        "rates": [
            {
                "mode": rate.mode.value,
                "sessions": rate.sessions,
                "mbit_s": mbit(rate.bit_s),
                "ci95_mbit_s": None
                if rate.low_bit_s is None or rate.high_bit_s is None
                else [mbit(rate.low_bit_s), mbit(rate.high_bit_s)],
            }
            for rate in ceiling.rates
        ],
    }
