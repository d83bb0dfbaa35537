"""`linkgauge flows`: many flows of different source ports, and whether one of a group of parallel links is bad."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .....engine.model.directions import Direction
from .....engine.model.errors import PlanError
from .....engine.model.plan import SocketOptions
from ....words import parsing
from ...click_extension.option_fields import flag, group, option
from ...output import check_output_file, emit_json, emit_rich, write_csv_file
from ...output_options import OUTPUT, json_flag, redact_flag
from ...peer_options import FarEndOptions, peer_argument
from ...plan_options import TEST, TurnOptions, device_option, source_option

if TYPE_CHECKING:
    from .....engine.model.peer import Peer
    from .....engine.near.flows.flow_measurement import FlowsRequest
    from .....engine.near.flows.tcp_flows import TcpFlowsRequest
    from .....engine.results.flows.flow_result import FlowsResult


@dataclass(frozen=True, slots=True)
class FlowsOptions:
    """A path whose parallel links are tested, and how that is printed."""

    peer: str | None = peer_argument()
    direction: Direction = option(
        TEST,
        "The direction to measure: out, in, or duplex for both at once.",
        brief="out, in, or duplex: both at once. [duplex]",
        default=Direction.DUPLEX,
    )
    tcp: bool = flag(
        TEST,
        "Use connections of TCP: routers may hash them otherwise than UDP.",
        brief="Use connections of TCP, which may be hashed otherwise.",
    )
    flows: str | None = option(
        TEST,
        "Flows, each with a source port of its own: 8 to 512, of TCP up to 128.",
        brief="Flows, each with a source port of its own. [256]",
        metavar="N",
        shown="256; 64 with --tcp",
    )
    datagrams: str | None = option(
        TEST, "Datagrams of each flow in the first round: 20 to 4000.", metavar="N", shown="200"
    )
    datagram: str | None = option(TEST, "UDP payload of a datagram, 64 to 9000 bytes.", metavar="SIZE", shown="256")
    rate: str | None = option(
        TEST,
        "Payload of all flows together in each direction; of UDP up to 100M.",
        brief="Payload of all flows in each direction. [8M]",
        metavar="RATE",
        shown="8M; 40M with --tcp",
    )
    cport: str | None = option(
        TEST, "Local port of the first flow; the others take the next.", metavar="N", shown="any"
    )
    source: str | None = source_option(TEST)
    device: str | None = device_option(TEST)
    turn: TurnOptions = group(TurnOptions)
    far_end: FarEndOptions = group(FarEndOptions)
    csv: Path | None = option(
        OUTPUT,
        "Write a row for each flow and direction.",
        brief="Write a row for each flow and direction.",
        metavar="FILE",
    )
    force: bool = flag(OUTPUT, "Replace the file if it exists.", "-f")
    as_json: bool = json_flag()
    redact: bool = redact_flag()

    def to_request(self) -> "FlowsRequest | TcpFlowsRequest":
        """Return the measurement; raise PlanError for a bad option."""
        from .....engine.near.flows.flow_measurement import FlowsRequest
        from .....engine.near.flows.tcp_flows import TcpFlowsRequest

        request = TcpFlowsRequest() if self.tcp else FlowsRequest()
        port = self.cport
        common = replace(
            request,
            direction=self.direction,
            flows=_integer(self.flows, "flows", "give 8 to 512", request.flows),
            rate_bit_s=request.rate_bit_s if self.rate is None else parsing.rate_bit_s(self.rate),
            first_port=None if port is None else parsing.integer(port, "cport", "give a port number, 1 to 65535"),
            binding=SocketOptions(source=self.source, device=self.device),
            turn=self.turn.apply_to(request.turn),
        )
        if isinstance(common, TcpFlowsRequest):
            for name, value in (("datagrams", self.datagrams), ("datagram", self.datagram)):
                if value is not None:
                    raise PlanError(name, f"{value} with --tcp", "only UDP has datagrams; leave one of them out")
            return common
        return replace(
            common,
            sweeps=_integer(self.datagrams, "datagrams", "give 20 to 4000", common.sweeps),
            datagram_bytes=_integer(self.datagram, "datagram", "give 64 to 9000 bytes", common.datagram_bytes),
        )


def flows(options: FlowsOptions) -> int:
    """Find one bad member of a group of parallel links (LAG, ECMP).

    Routers and bonds hash flows over parallel links. Many flows of different source ports show whether some lose
    packets or are slower than the others, and which share of the links that is: about 15 seconds, and up to some
    minutes until it is clear. Exit status 1 means that there is a bad member.
    """
    from .....engine.host.event_loop import run
    from .....engine.results.flows.flow_document import flow_rows, flows_document
    from ...render.flow_report import flow_report
    from ...termination import INCOMPLETE, PASS, SHORT

    far_end = options.far_end.find_linkgauge(options.peer, "flows")
    request = options.to_request()
    check_output_file("CSV file", options.csv, force=options.force)
    result = replace(run(_measure(far_end, request)), peer=far_end.shown)
    if options.csv is not None:
        write_csv_file(options.csv, flow_rows(result))
    if options.as_json:
        emit_json(flows_document(result))
    else:
        emit_rich(*flow_report(result))
    return SHORT if result.has_bad_member else PASS if result.stands else INCOMPLETE


def _integer(text: str | None, field: str, allowed: str, default: int) -> int:
    return default if text is None else parsing.integer(text, field, allowed)


async def _measure(peer: "Peer", request: "FlowsRequest | TcpFlowsRequest") -> "FlowsResult":
    from .....engine.near.connect import open_far_end
    from .....engine.near.flows.flow_measurement import FlowsRequest, measure_flows
    from .....engine.near.flows.tcp_flows import measure_tcp_flows

    async with open_far_end(peer) as far_end:
        if isinstance(request, FlowsRequest):
            return await measure_flows(far_end, request)
        return await measure_tcp_flows(far_end, request)
