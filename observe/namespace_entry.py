"""The network namespace of a container or of `ip netns`: this process moves into it, and sees its sockets."""

import os
import re
from pathlib import Path
from typing import Final

from ..engine.lab.namespaces import set_namespace
from ..engine.model.errors import LinkgaugeError, PlanError, UsageError, explain_os_error

_NAMED: Final = Path("/run/netns")  # ip-netns(8)
_NAME: Final = re.compile(r"[\w.@:+-]{1,255}", re.ASCII)


def enter_namespace(name: str | None, pid: int | None) -> None:
    """Move this process into a named namespace, or that of a process; with neither do nothing.

    Call it before there are threads: a thread keeps the namespace that it began in. Raises PlanError for a bad
    name, UsageError for both at once, and LinkgaugeError if there is no such namespace, or the user may not enter.
    """
    if name is not None and pid is not None:
        raise UsageError("--netns and --pid name two namespaces; give one of them")
    if name is not None:
        if not _NAME.fullmatch(name) or name in {".", ".."}:
            raise PlanError("netns", name, "give a name that `ip netns list` shows")
        _enter(_NAMED / name, f"the network namespace {name}")
    elif pid is not None:
        _enter(Path(f"/proc/{pid}/ns/net"), f"the network namespace of process {pid}")


def _enter(path: Path, what: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise LinkgaugeError(f"{what} does not exist") from error
    except OSError as error:
        raise LinkgaugeError(f"cannot enter {what}: {explain_os_error(error)}; run this as root") from error
    try:
        set_namespace(descriptor)
    except OSError as error:
        raise LinkgaugeError(f"cannot enter {what}: {explain_os_error(error)}; run this as root") from error
    finally:
        os.close(descriptor)
