"""`linkgauge shape`: the numbers of a policer or shaper, each direction by itself."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .....engine.model.directions import Direction
from .....engine.model.plan import SocketOptions
from ....words import parsing
from ...click_extension.option_fields import flag, group, option
from ...output import check_output_file, emit_json, emit_line, write_csv_file
from ...output_options import OUTPUT, json_flag, redact_flag
from ...peer_options import FarEndOptions, peer_argument
from ...plan_options import TEST, TurnOptions, device_option, source_option

if TYPE_CHECKING:
    from .....engine.model.peer import Peer
    from .....engine.near.shape.shape_measurement import ShapeRequest
    from .....engine.results.shape.shape_result import ShapeResult

_BURSTS: Final = "10"


@dataclass(frozen=True, slots=True)
class ShapeOptions:
    """A path whose limit is measured, and how that is printed."""

    peer: str | None = peer_argument()
    direction: Direction = option(
        TEST,
        "The direction to measure: out, in, or duplex for both, one after the other.",
        brief="out, in, or duplex: one after the other. [duplex]",
        default=Direction.DUPLEX,
    )
    bursts: str = option(
        TEST,
        "Bursts in each direction, 3 to 50.",
        brief="Bursts in each direction, 3 to 50. [10]",
        default=_BURSTS,
        metavar="N",
    )
    datagram: str | None = option(
        TEST,
        "UDP payload of a datagram: auto for the path's MTU, or 64 to 9000 bytes.",
        brief="UDP payload of a datagram. [auto]",
        metavar="SIZE",
        shown="auto",
    )
    source: str | None = source_option(TEST)
    device: str | None = device_option(TEST)
    turn: TurnOptions = group(TurnOptions)
    far_end: FarEndOptions = group(FarEndOptions)
    csv: Path | None = option(
        OUTPUT, "Write a row for each direction.", brief="Write a row for each direction.", metavar="FILE"
    )
    force: bool = flag(OUTPUT, "Replace the file if it exists.", "-f", brief="Replace the file if it exists.")
    as_json: bool = json_flag()
    redact: bool = redact_flag()

    def to_request(self) -> "ShapeRequest":
        """Return the measurement; raise PlanError for a bad option."""
        from .....engine.near.shape.shape_measurement import ShapeRequest

        return ShapeRequest(
            direction=self.direction,
            bursts=parsing.integer(self.bursts, "bursts", "give 3 to 50"),
            datagram_bytes=None if self.datagram is None else parsing.datagram_bytes(self.datagram),
            binding=SocketOptions(source=self.source, device=self.device),
            turn=self.turn.apply_to(ShapeRequest().turn),
        )


def shape(options: ShapeOptions) -> int:
    """Measure a policer or shaper: its rate (CIR), its burst (CBS), and its queue.

    Bursts of UDP at the line's rate after idle pauses, each followed by an overload, show what passes: ten in each
    direction, about 15 seconds, and longer for slow limits with large bursts. The line is fully loaded meanwhile.
    """
    from .....engine.host.event_loop import run
    from .....engine.results.shape.shape_document import shape_document, shape_rows
    from ...render.shape_report import shape_lines
    from ...termination import INCOMPLETE, PASS

    far_end = options.far_end.find_linkgauge(options.peer, "shape")
    request = options.to_request()
    check_output_file("CSV file", options.csv, force=options.force)
    result = replace(run(_measure(far_end, request)), peer=far_end.shown)
    if options.csv is not None:
        write_csv_file(options.csv, shape_rows(result))
    if options.as_json:
        emit_json(shape_document(result))
    else:
        for line in shape_lines(result):
            emit_line(line)
    return PASS if result.stands else INCOMPLETE


async def _measure(peer: "Peer", request: "ShapeRequest") -> "ShapeResult":
    from .....engine.near.connect import open_far_end
    from .....engine.near.shape.shape_measurement import measure_shape

    async with open_far_end(peer) as far_end:
        return await measure_shape(far_end, request)
