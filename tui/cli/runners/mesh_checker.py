"""`linkgauge mesh --check`: the hosts of a mesh tried without a test, and what is wrong with each."""

from ....engine.host.event_loop import run
from ....mesh.check.mesh_check import MeshCheck, check_mesh
from ...mesh.check_words import check_json, check_lines
from ...mesh.mesh_spec import MeshSpec
from ...session.run_spec import Outputs
from ...words import numbers
from ..output import emit_json, emit_json_line, emit_line, write_in_background
from ..termination import INCOMPLETE, PASS, RunStopper
from .recording import end_unmeasured, error_lines


def run_mesh_check(spec: MeshSpec, outputs: Outputs) -> int:
    """Check the hosts of a mesh and print the result; return the exit status."""
    write_in_background()
    stopper = RunStopper()
    with error_lines(as_json_stream=outputs.as_json_stream):
        check = run(_check(spec, stopper))
    if check is None:
        return end_unmeasured(stopper.first, as_json_stream=outputs.as_json_stream)
    document = check_json(check, spec.plan.group)
    if outputs.as_json:
        emit_json(document)
    elif outputs.as_json_stream:
        emit_json_line({"type": "mesh_check", "summary": document})
    else:
        for line in check_lines(check):
            emit_line(numbers.sanitize(line))
    return PASS if check.is_usable else INCOMPLETE


async def _check(spec: MeshSpec, stopper: RunStopper) -> MeshCheck | None:
    """Return the check; None if a signal came before."""
    with stopper.in_force():
        return await check_mesh(spec.plan, spec.scheduler, spec.remote_python)
    return None
