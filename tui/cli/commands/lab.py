"""`linkgauge lab`: an emulation of a preset's link on this machine, for trying things out."""

import os
import shutil
import sys
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....engine.model.errors import UsageError
from ..click_extension.option_fields import argument, flag, group, option
from ..completion import complete_preset
from ..output import PROGRAM, emit_json, emit_line, print_stderr
from ..output_options import json_flag
from ..peer_options import PEER_VARIABLE
from ..web.browser_page import has_screen

if TYPE_CHECKING:
    from ....engine.lab.link_spec import LabLink
    from ....engine.model.peer import Peer

_CLEAN: Final = "clean"
_FAULTS: Final = "Faults of the link"


@dataclass(frozen=True, slots=True)
class FaultOptions:
    """The faults that a lab's link has on purpose."""

    wrong_mtu: int | None = option(_FAULTS, "MTU of the remote end.", metavar="N")
    slow: float = option(_FAULTS, "Reduce the line rate by this.", default=0.0, metavar="PERCENT", shown="0")
    delay: float = option(_FAULTS, "Delay each frame, in each direction.", default=0.0, metavar="MS", shown="0")
    loss: float = option(_FAULTS, "Lose frames, in each direction.", default=0.0, metavar="PERCENT", shown="0")
    seed: int = option(
        _FAULTS, "Choose the frames that are lost; the same seed, the same frames.", default=1, metavar="N"
    )


@dataclass(frozen=True, slots=True)
class LabOptions:
    """A link, and what runs on it."""

    preset: str = argument("PRESET|clean", "Preset of the link.", complete=complete_preset)
    more: tuple[str, ...] = argument(
        "[-- MORE ...]", "Options for the app or the check, or a command for --shell.", default=()
    )
    check: bool = flag("", "Run a check instead of the app.")
    shell: bool = flag("", "Open a shell at the local end; commands in it need no PEER.")
    faults: FaultOptions = group(FaultOptions)
    as_json: bool = json_flag()

    def check_exclusive(self) -> None:
        """Refuse options that exclude each other, before anything is built."""
        if self.check and self.shell:
            raise UsageError("--check and --shell exclude each other; give one of them")
        if self.as_json and not self.check:
            raise UsageError("--json needs --check, or lab clean")
        if not (self.check or self.shell or has_screen()):
            raise UsageError(f"the app needs a terminal; without one: {PROGRAM} lab {self.preset} --check")

    def command(self, peer: str) -> list[str]:
        """Return what runs at the local end of the link."""
        if self.shell:
            return list(self.more) or [os.environ.get("SHELL") or "/bin/sh"]
        subcommand = ["check", self.preset, peer] if self.check else ["app", peer, "--preset", self.preset]
        # Nobody else can reach the lab's link, so its far end asks for no key.
        options = ["--open", *(["--json"] if self.as_json else []), *self.more]
        return [sys.executable, "-P", "-m", PROGRAM, *subcommand, *options]


def lab(options: LabOptions) -> int:
    """Emulate a preset's link on this machine, and open the app on it.

    The link connects two network namespaces. Needs Linux, iproute2, and root or a kernel that allows namespaces for
    users. Everything is removed when the command ends; `lab clean` ends processes that a killed lab left behind.
    """
    if options.preset == _CLEAN:
        return _clean(as_json=options.as_json)
    from ....engine.lab.link_lab import open_lab
    from ....engine.model.shared_key import KEY_VARIABLE
    from ....presets.lab_link import Faults, plan_lab_link
    from ...session.user_presets import load_presets

    link = plan_lab_link(load_presets(print_stderr).find(options.preset), Faults(*astuple(options.faults)))
    options.check_exclusive()
    with open_lab(link) as opened_lab:
        print_stderr(_link_text(link, opened_lab.peer))
        for note in opened_lab.notes:
            print_stderr(note)
        peer = str(opened_lab.peer)
        variables = {PEER_VARIABLE: peer, KEY_VARIABLE: ""}
        if options.shell:
            variables["PATH"] = _path_with_program()
        if options.shell and not options.more:
            print_stderr(f"no command needs the host here: {PROGRAM} check {options.preset}; exit ends the lab")
        return opened_lab.run(options.command(peer), variables)


def _path_with_program() -> str:
    """Return the PATH, with the folder of this copy's program if the PATH has none."""
    path, folder = os.environ.get("PATH", os.defpath), Path(sys.executable).parent
    has_program = shutil.which(PROGRAM) is not None or not (folder / PROGRAM).exists()
    return path if has_program else f"{folder}{os.pathsep}{path}"


def _link_text(link: "LabLink", peer: "Peer") -> str:
    parts = [
        f"{link.rate_bit_s / 1e6:g} Mb/s, MTU {link.mtu_bytes}",
        "half duplex" if link.half_duplex else "",
        f"remote MTU {link.far_mtu_bytes}" if link.far_mtu_bytes != link.mtu_bytes else "",
        f"{link.delay_ns / 1e6:g} ms delay each way" if link.delay_ns else "",
        f"{link.loss_percent:g} % loss each way" if link.loss_percent else "",
    ]
    return f"the lab's link: {', '.join(filter(None, parts))}; remote end {peer}, on this machine"


def _clean(*, as_json: bool) -> int:
    from ....engine.lab.link_lab import terminate_orphans

    ended = terminate_orphans()
    if as_json:
        emit_json({"ended_processes": ended})
    else:
        emit_line(f"ended processes of killed labs: {len(ended)}" if ended else "no lab left anything behind")
    return 0
