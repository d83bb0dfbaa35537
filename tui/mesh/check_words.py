"""The check of a mesh's hosts: a line for each host and path, and the document of `--json`. Pure.

`engine/results/schemas/mesh.schema.json` has the document as `check`.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ... import __version__
from ...engine.results.figure_codec import DOCUMENT_VERSION
from ...mesh.check.mesh_check import HostCheck, MeshCheck, PathCheck
from ..words import numbers
from .mesh_document import failure_json, host_json
from .mesh_words import cell_words


def check_lines(check: MeshCheck) -> Iterator[str]:
    """Yield a line for each host, one for each path that cannot be used, and the conclusion.

    Paths to one host that fail alike from all others are one line.
    """
    yield from map(_host_line, check.hosts)
    failed: dict[tuple[str, str], list[PathCheck]] = defaultdict(list)
    for path in check.paths:
        if path.failure is not None:
            failed[path.cell.receiver, path.failure.detail].append(path)
    for (receiver, detail), paths in failed.items():
        others = sum(path.cell.receiver == receiver for path in check.paths)
        whole = [f"all others to {receiver}"] if len(paths) == others > 1 else [cell_words(p.cell) for p in paths]
        yield from (f"{each}: {detail}" for each in whole)
    yield _conclusion(check)


def _host_line(check: HostCheck) -> str:
    host = check.host
    if check.failure is not None:
        return f"{host.name}: not usable: {check.failure.detail}"
    if check.port is None:
        return f"{host.name}: answers, but there is no other host to try its port from"
    return (
        f"{host.name}: usable: {host.address}, linkgauge {__version__}, Python {check.python}, "
        f"endpoint on port {check.port}"
    )


def _conclusion(check: MeshCheck) -> str:
    if check.is_usable:
        hosts = numbers.quantity(len(check.hosts), "host")
        return f"usable: {hosts}, each reaches all others ({numbers.quantity(len(check.paths), 'path')})"
    bad = sum(each.failure is not None for each in check.hosts)
    paths = sum(each.failure is not None for each in check.paths)
    counts = [f"{bad} of {numbers.quantity(len(check.hosts), 'host')}"] if bad else []
    counts += [f"{paths} of {numbers.quantity(len(check.paths), 'path')}"] if paths else []
    return f"not usable: {', '.join(counts) or 'a mesh needs at least 2 hosts'}"


def check_json(check: MeshCheck, group: str) -> dict[str, Any]:
    """Return the check as one document; unknown values are null. `group` is the name of the mesh."""
    return {
        "schema": DOCUMENT_VERSION,
        "group": group,
        "linkgauge": __version__,
        "is_usable": check.is_usable,
        "hosts": [
            {
                **host_json(each.host),
                "python": each.python,
                "port": each.port,
                "failure": failure_json(each.failure),
            }
            for each in check.hosts
        ],
        "paths": [
            {
                "sender": each.cell.sender,
                "receiver": each.cell.receiver,
                "port": each.port,
                "failure": failure_json(each.failure),
            }
            for each in check.paths
        ],
    }
