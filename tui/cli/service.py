"""What a far end is started with, and its start in a process that has nothing else in it.

Reading a command line loads more than serving does: 12 MiB that a far end would hold as long as it runs. So it is
started anew in the same process (execv(2)): its id, its descriptors and its environment are what they were.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from ...engine.limits import Limits


@dataclass(frozen=True, slots=True)
class LimitChoice:
    """Where limits come from: a file, and what was typed, which comes first."""

    file: str | None = None
    typed: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def read(self) -> "Limits":
        """Return the limits; raise LimitProblem for the first thing that is wrong."""
        from ...engine.limits import LimitProblem, Limits

        limits = Limits()
        if self.file is not None:
            try:
                limits = Limits.of_toml(Path(self.file).read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "it is not text"
                raise LimitProblem(f"the limits {self.file} cannot be read: {why}") from error
            except LimitProblem as error:
                raise LimitProblem(f"{self.file}: {error}") from error
        typed: dict[str, object] = {}
        for text in self.typed:
            name, equals, value = text.partition("=")
            if not equals:
                raise LimitProblem(f"--limit {text[:40]}: give NAME=VALUE, such as clients=8")
            typed[name.strip()] = value
        networks = {"allow": self.allow, "deny": self.deny}
        return limits.changed({**typed, **{name: given for name, given in networks.items() if given}})


@dataclass(frozen=True, slots=True)
class Service:
    """What a far end is started with."""

    bind: str | None
    port: int
    key_file: str | None = None
    is_open: bool = False
    tls: tuple[str, str] | None = None
    limits: LimitChoice = LimitChoice()
    as_json: bool = False
    log_as_json: bool = False

    def start_anew(self) -> NoReturn:
        """Be that far end, and nothing else."""
        sys.stdout.flush()
        sys.stderr.flush()
        module = f"{__package__}.far_end"
        os.execv(sys.executable, [sys.executable, "-P", "-m", module, json.dumps(asdict(self))])  # noqa: S606

    @classmethod
    def of_text(cls, text: str) -> "Service":
        """Return what `start_anew` was told."""
        given: dict[str, Any] = json.loads(text)
        limits: dict[str, Any] = given.pop("limits")
        file = limits.pop("file")
        choice = LimitChoice(file, **{name: tuple(texts) for name, texts in limits.items()})
        tls: list[str] | None = given.pop("tls")
        return cls(**given, tls=None if tls is None else (tls[0], tls[1]), limits=choice)
