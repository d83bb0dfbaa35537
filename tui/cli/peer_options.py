"""A far end on the command line: `[PRESET] PEER`, the credentials for it, and how ssh starts it.

Every command that tests has the same order of words. A preset's name is never taken for a host, so that the words
may be swapped; a host of that name is written with its port.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...engine.model.errors import PlanError, UnknownPreset, UsageError
from ...engine.model.ip_address import IpVersion
from ...engine.model.peer import DEFAULT_PORT, LOOPBACK, Peer
from ...engine.model.plan import Plan
from ...engine.protocol.foreign.missing_features import Feature, find_unsupported, why_unavailable
from ..session.setting_table import family
from ..words import parsing
from .click_extension.option_fields import argument, flag, group, is_typed, option, setting_option
from .completion import complete_test_preset
from .plan_options import TEST

if TYPE_CHECKING:
    from ...presets.catalog import Catalog
    from ...presets.sending_rate import SendingRate

PEER_VARIABLE: Final = "LINKGAUGE_PEER"
"""The variable with the far end of a command that names none. A lab sets it for its shell."""
AUTO: Final = "auto"
NO_PRESET: Final = "none"
# Sections of the help.
_ACCESS: Final = "Access to the remote host"
_SSH: Final = "Peers by ssh"

PEER_HELP: Final = "HOST[:PORT], ssh://[USER@]HOST, iperf3://HOST, librespeed://HOST, ndt7://HOST, or loopback."
_PRESET_HELP: Final = "Preset to compare with, auto, or none; see linkgauge presets."


def preset_argument(shown: str) -> Any:
    """Return the first word of a command that tests; `shown` is what counts without it."""
    return argument("[PRESET]", _PRESET_HELP, default=None, shown=shown, complete=complete_test_preset)


def peer_argument(metavar: str = "PEER", help_: str = PEER_HELP) -> Any:
    """Return the last word of a command that tests."""
    return argument(metavar, help_, default=None, shown=PEER_VARIABLE)


@dataclass(frozen=True, slots=True)
class Target:
    """The preset to compare with, as `auto`, an id or None for none, and the far end as text."""

    preset: str | None
    peer: str


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """`[PRESET] PEER`: what a test is compared with, and the far end."""

    first: str | None = preset_argument(NO_PRESET)
    second: str | None = peer_argument()
    preset: str | None = option(TEST, "The same as PRESET.", metavar="ID", complete=complete_test_preset)

    def find(self, command: str, default: str | None = None) -> Target:
        """Return the preset and the far end; without a PEER the one of the environment.

        Args:
            command: the name of the command, for the remedy.
            default: the preset without a PRESET.

        Raises UsageError if there is no PEER, or if two presets are named.
        """
        preset, peer = self.read_words()
        found, preset = find_named(peer, command, preset), preset or self.preset or default
        return Target(None if preset == NO_PRESET else preset, found)

    def read_words(self) -> tuple[str | None, str | None]:
        """Return the preset and the far end that are typed; None for what is not. Raises as `find`."""
        words = [word for word in (self.first, self.second) if word is not None]
        preset, peer = _sort_words(words) if words else (None, None)
        typed = self.preset if is_typed("preset") else None
        if preset is not None and typed is not None and preset != typed:
            raise UsageError(f"PRESET {preset} and --preset {typed} contradict each other; give one of them")
        return preset or typed, peer


@dataclass(frozen=True, slots=True)
class JudgedTargetOptions(TargetOptions):
    """The same, for a command that chooses the preset itself if none is named."""

    first: str | None = preset_argument(AUTO)
    preset: str | None = setting_option("preset", TEST, brief="", complete=complete_test_preset)


def named_peer(text: str | None) -> str | None:
    """Return the far end that is named, else the one of the environment; None without any."""
    return os.environ.get(PEER_VARIABLE) or None if text is None else text


def find_named(text: str | None, command: str, preset: str | None = None) -> str:
    """Return the far end of `named_peer`. Raises UsageError, with the command that has it, if there is none."""
    found = named_peer(text)
    if found is not None:
        return found
    from ...engine.model.texts.shell_commands import shell_command

    words = [] if preset is None else [preset]
    remedy = f"PEER is missing; give a host: {shell_command('linkgauge', command, *words, 'HOST')}"
    if preset in {None, AUTO, NO_PRESET}:
        raise UsageError(f"{remedy}, or loopback for this machine alone")
    raise UsageError(f"{remedy}; {_escape_text(preset or '')}")


def _sort_words(words: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the preset and the far end of one or two words, in either order."""
    from ..session.user_presets import load_presets

    catalog = load_presets()
    ids = {AUTO, NO_PRESET, *(preset.id for preset in catalog.presets)}
    only_presets = ids - {LOOPBACK.host}  # which is a peer as well
    first, last = words[0], words[-1]
    if len(words) == 1:
        return (first, None) if first in only_presets else (None, first)
    if last not in only_presets:
        is_swapped = first not in ids and _resembles(catalog, last) and not _resembles(catalog, first)
        return (last, first) if is_swapped else (first, last)
    if first in only_presets:
        raise UsageError(f"{first} and {last} are presets, and the host is missing; {_escape_text(last)}")
    return last, first


def _resembles(catalog: "Catalog", word: str) -> bool:
    """Return whether a word that is not a preset is nearly one."""
    try:
        catalog.find(word)
    except UnknownPreset as error:
        return bool(error.nearest)
    return False


def _escape_text(preset: str) -> str:
    return f"a host that is named so is written {preset}:{DEFAULT_PORT}"


def check_supported(plan: Plan, peer: Peer, rate: "SendingRate | None" = None) -> None:
    """Raise PlanError if a peer cannot carry out a plan, or a search for the rate of datagrams."""
    problem = find_unsupported(plan, peer)
    if problem is not None:
        raise problem
    reason = why_unavailable(peer, Feature.RATE_SEARCH)
    if rate == "search" and reason is not None:
        raise PlanError("rate", f"search with {peer}", reason)


def _refuse_given(options: dict[str, bool], reason: str) -> None:
    """Raise UsageError with the reason for the first of these options that was given."""
    for name, is_given in options.items():
        if is_given:
            raise UsageError(f"{name} {reason}")


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """The credentials for a far end, and the demands on it."""

    key_file: Path | None = setting_option("key_file", _ACCESS)
    open_: bool = flag(_ACCESS, "Connect even if the remote end does not ask for your key.")
    tls_fingerprint: str | None = option(
        _ACCESS,
        "Use TLS, and accept only the certificate with this fingerprint, as the endpoint prints it.",
        metavar="SHA256",
    )
    iperf3_public_key: Path | None = option(
        _ACCESS,
        "Public RSA key of an iperf3 server, for iperf3://USER@HOST; the password is in IPERF3_PASSWORD.",
        metavar="FILE",
        shown="IPERF3_PUBLIC_KEY",
    )
    iperf3_pkcs1: bool = flag(_ACCESS, "Encrypt the password for an iperf3 server before 3.17, in its old padding.")
    family: str = setting_option("family", _ACCESS)
    version4: bool = flag(_ACCESS, "Same as --family 4.", "-4")
    version6: bool = flag(_ACCESS, "Same as --family 6.", "-6")

    def parse_peer(self, text: str) -> Peer:
        """Return the peer of this text, with its IP version and the credentials for it.

        Raises UsageError for credentials of another kind, and PlanError for an address of the other IP version.
        """
        return self.limit_ip(self._with_credentials(text))

    def limit_ip(self, peer: Peer) -> Peer:
        """Return a peer with its addresses of one IP version only, if one is given. Raises as `parse_peer`."""
        typed: dict[str, IpVersion | None] = {
            "-4": 4 if self.version4 else None,
            "-6": 6 if self.version6 else None,
            f"--family {self.family}": family(self.family) if is_typed("family") else None,
        }
        versions: dict[str, IpVersion] = {name: version for name, version in typed.items() if version is not None}
        if len(set(versions.values())) > 1:
            raise UsageError(f"{' and '.join(versions)} exclude each other; give one of them")
        if versions:
            return peer.over_ip(next(iter(versions.values())))
        try:
            return peer.over_ip(family(self.family))
        except PlanError:  # the address is of the other version: a default does not forbid it
            return peer

    def _with_credentials(self, text: str) -> Peer:
        from ..session.credentials import read_fingerprint, with_access

        peer = parsing.peer(text)
        if peer.iperf3 is not None:
            return self._with_login(peer)
        if peer.speed is not None:
            self._refuse_keys(peer, with_fingerprint=not peer.speed.is_tls)
        options = {
            "--iperf3-public-key": self.iperf3_public_key is not None,
            "--iperf3-pkcs1": self.iperf3_pkcs1,
        }
        _refuse_given(options, f"needs an iperf3 server, such as iperf3://USER@{peer.host}")
        fingerprint = None if self.tls_fingerprint is None else read_fingerprint(self.tls_fingerprint)
        is_typed_key = is_typed("key_file")
        return with_access(
            peer,
            key_file=self.key_file if is_typed_key else None,
            usual_key_file=None if is_typed_key else self.key_file,
            may_be_open=self.open_,
            fingerprint=fingerprint,
        )

    def _refuse_keys(self, peer: Peer, *, with_fingerprint: bool = True) -> None:
        """Raise UsageError for the credentials of an endpoint."""
        options = {
            "--key-file": self.key_file is not None and is_typed("key_file"),
            "--open": self.open_,
            "--tls-fingerprint": with_fingerprint and self.tls_fingerprint is not None,
        }
        _refuse_given(options, f"is of no use with {peer}: {why_unavailable(peer, Feature.KEY)}")

    def _with_login(self, peer: Peer) -> Peer:
        from ..session.credentials import with_iperf3_login

        self._refuse_keys(peer)
        return with_iperf3_login(peer, self.iperf3_public_key, is_pkcs1=self.iperf3_pkcs1)


@dataclass(frozen=True, slots=True)
class SshOptions:
    """The way ssh starts a far end."""

    ssh_command: str | None = option(
        _SSH, "Command instead of ssh, such as 'ssh -i key'; also LINKGAUGE_SSH_COMMAND.", metavar="TEXT"
    )
    data_port: str | None = option(_SSH, "Remote TCP port for data, if a firewall blocks others.", metavar="N")
    via_ssh: bool = flag(_SSH, "Send the data through ssh too: measures ssh, not the link alone.")

    def apply_to(self, peer: Peer) -> Peer:
        """Return the peer with these options; raise UsageError for options that it has no use for."""
        if peer.ssh is None:
            options = {
                "--ssh-command": self.ssh_command is not None,
                "--data-port": self.data_port is not None,
                "--via-ssh": self.via_ssh,
            }
            _refuse_given(options, f"needs a peer by ssh, such as ssh://{peer.host}")
            return peer
        ssh = replace(
            peer.ssh,
            command=self.ssh_command,
            data_port=None if self.data_port is None else parsing.data_port(self.data_port),
            is_data_tunneled=self.via_ssh,
        )
        return replace(peer, ssh=ssh)


@dataclass(frozen=True, slots=True)
class FarEndOptions:
    """How a far end is reached."""

    access: AccessOptions = group(AccessOptions)
    ssh: SshOptions = group(SshOptions)

    def find_peer(self, text: str) -> Peer:
        """Return the peer of this text with its credentials and these options.

        Raises UsageError for options that it has no use for, and PlanError for a wrong address.
        """
        return self.ssh.apply_to(self.access.parse_peer(text))

    def find_linkgauge(self, text: str | None, command: str) -> Peer:
        """Return the named peer of a command; raise UsageError if it is another program, which does not know it."""
        peer = self.find_peer(find_named(text, command))
        reason = why_unavailable(peer, Feature.PATH_MTU)
        if reason is not None:
            raise UsageError(f"linkgauge {command} does not go with {peer}: {reason}")
        return peer
