"""A test of many flows, printed: for each direction its kinds of flows, sentences, and the ports of bad flows."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from ....engine.results.flows.flow_result import FlowsResult
from ...kit.drawing.printed_table import indented
from ...words.numbers import arrow
from .flow_sentences import (
    bad_ports,
    class_table,
    direction_sentences,
    heading,
    parting_sentence,
    port_list,
    silent_sentence,
)


def flow_report(result: FlowsResult) -> Iterator[RenderableType]:
    """Yield the parts of the report."""
    yield Text(heading(result))
    silent = silent_sentence(result)
    if silent is not None:
        yield Text(silent, "bold")
        yield Text(f"  silent ports: {port_list(result.silent_ports)}")
    for each in result.directions:
        yield Text("")
        for sentence in direction_sentences(each, result.transport):
            yield Text(f"{arrow(each.direction)} {each.direction.value:3} {sentence}", "bold")
        parting = result.parting(each.direction)
        if parting is not None:
            yield Text(f"      {parting_sentence(parting)}")
        yield indented(class_table(each))
        for line in bad_ports(each):
            yield Text(f"  {line}")
