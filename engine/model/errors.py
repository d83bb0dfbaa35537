"""The errors of linkgauge, as one tree. Every text names the thing, the place and the remedy.

LinkgaugeError
├── UsageError               the command line asks for something impossible
├── PlanError                a plan that cannot be run
├── InvalidLimitError        a limit that does not exist, or a value that it cannot have
├── InvalidKeyError          a shared key that cannot be used
├── TlsError                 a certificate or its key that cannot be used
├── UnknownPreset            no preset has this id
├── DecodeError              a JSON value of the wrong type or out of range
├── PeerError                the far end cannot be used
│   ├── PeerUnreachable      the name does not resolve, or nothing accepts the connection
│   ├── PeerNotLinkgauge     something answers that is not a linkgauge endpoint
│   ├── PeerVersionMismatch  an endpoint of another protocol version
│   ├── PeerRefused          the endpoint declines, with its reason
│   │   ├── PeerKeyRequired  it asks for a key that this end does not have
│   │   └── PeerBusy         other tests run there now
│   ├── PeerLacksTurns       an earlier version, which gives no turns
│   ├── PeerUntrusted        it did not prove that it is the endpoint that was meant
│   ├── ConnectionTampered   the control connection was changed between the two ends
│   ├── ServerEnded          an iperf3 server ends the test
│   └── ConnectionClosed     the control connection ended
│       ├── SilentPeer       nothing, or not enough, came before a deadline
│       └── ConnectionSpent  a server closed it in order, and another one may follow
├── ProtocolError            a broken rule of the control protocol
│   ├── LocalProtocolError   by this end: a bug of ours
│   └── RemoteProtocolError  by the other end
│       └── RequestDeclined  it asks for what an endpoint does not do
│           ├── LimitReached more than a limit allows
│           ├── EndpointBusy other tests run there now
│           └── AddressRefused its address is excluded
├── Iperf3Refusal            an iperf3 client's test that a server of ours refuses or ends
├── WorkerError              a worker process did not start, or ended by itself
├── EndpointError            the endpoint cannot listen there
├── LabError                 a lab could not be built
│   └── LabUnavailable       this machine or user cannot have labs at all
├── ClusterError             the hosts of a mesh cannot be used
│   └── TooFewHosts          fewer than two of them can
├── ExtraMissing             a package that is installed only on demand is missing
├── RunLogError              the run log cannot be used
│   ├── RunLogFull           its disk is full
│   ├── RunLogLocked         another process has it locked for long
│   └── UnknownRun           no run has this id, or several have this beginning of one
├── OutputError              a result could not be written
└── PreferencesNotSaved      the settings could not be written

Each has the exit status of a command that it ends: 2 if the command line is wrong, 3 if no test could be run.
"""

import difflib
import errno
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

_NAME: Final = "linkgauge"
_USAGE_STATUS: Final = 2
_MOST_SHOWN: Final = 64  # characters of a wrong id
_REMEDIES: Final = {
    errno.EMFILE: "raise ulimit -n",
    errno.ENOMEM: "raise ulimit -d and -v",
    errno.EAGAIN: "raise ulimit -u",  # of fork(2) and clone(2)
}


def make_printable(text: str) -> str:
    """Return text from elsewhere without control characters, so that it cannot drive a terminal.

    A no-break space, which groups digits, is harmless.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\u00a0" else "\N{REPLACEMENT CHARACTER}" for c in text)


def explain_os_error(error: OSError, name: str = "") -> str:
    """Return the reason of a system error, without its number and arguments.

    `name` is the host name that the failed call looked up, if any: an error of the resolver (its numbers are
    negative, getaddrinfo(3)) does not have it.
    asyncio and the resolver write their own texts, with addresses as Python values. An error of asyncio has no text
    if a client closes its connection during the TLS handshake.
    """
    if (tls := getattr(error, "library", None)) is not None:  # an ssl.SSLError; its number is OpenSSL's
        why = str(getattr(error, "reason", None) or tls)
        return f"TLS failed ({why.lower().replace('_', ' ')})"
    if error.errno is not None and error.errno in errno.errorcode:
        text = os.strerror(error.errno)
        return text[:1].lower() + text[1:]
    if error.errno is not None and error.errno < 0:
        why = error.strerror or "unknown error"
        return f"{make_printable(name) or 'a name'} does not resolve to an address ({why[:1].lower()}{why[1:]})"
    unknown = "connection lost" if isinstance(error, ConnectionError) else "unknown error"
    return error.strerror or str(error) or unknown


def explain_resource_error(error: OSError | MemoryError) -> str:
    """Return the reason of an error of the system or of memory that could not be allocated, with a remedy."""
    if isinstance(error, MemoryError):
        return "out of memory"
    remedy = _REMEDIES.get(error.errno or 0)
    return explain_os_error(error) + (f": {remedy}" if remedy else "")


def explain_extra(need: str, extra: str) -> str:
    """Return what is missing here and the command that installs it: `a mesh needs Dask: pip install '…'`.

    `extra` is the name in `linkgauge[NAME]`: packages that only some commands need.
    """
    return f"{need}: {_install_command(extra)}"


def _install_command(extra: str) -> str:
    """Return the command that adds an extra to this copy, however it was installed."""
    from sysconfig import get_path  # few commands lack an extra

    root, parts, (source, installer) = Path(__file__).parents[2], Path(sys.prefix).parts, _origin()
    is_clone = (root / "pyproject.toml").exists()
    wanted = shlex.quote(f"{root if is_clone else source}[{extra}]")
    if "@" in source:  # such as the address of a repository
        wanted = shlex.quote(source.replace("@", f"[{extra}] @", 1))
    python = shlex.quote(sys.executable or "python3")
    if "pipx" in parts:
        return f"pipx install --force {wanted}"
    if parts[-3:-1] == ("uv", "tools"):
        return f"uv tool install --force {wanted}"
    editable = "-e " if is_clone else ""
    if installer == "uv":
        return f"uv pip install --python {python} {editable}{wanted}"
    is_managed = sys.prefix == sys.base_prefix and (Path(get_path("stdlib")) / "EXTERNALLY-MANAGED").exists()
    if is_managed and installer != "pip":
        return f"install them with the system's package manager, or a copy of your own: pipx install {wanted}"
    return f"{python} -m pip install {'--break-system-packages ' if is_managed else ''}{editable}{wanted}"


def _origin() -> tuple[str, str]:
    """Return where this copy was installed from, as pip takes it, and the installer's name; "" if it is unknown.

    Installers note both (PEP 610, PEP 627). A copy from an index, or from files that are gone, has its name alone.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        installed = distribution(_NAME)
    except PackageNotFoundError:
        return _NAME, ""
    installer = (installed.read_text("INSTALLER") or "").strip()
    try:
        noted: Any = json.loads(installed.read_text("direct_url.json") or "{}")
        address, kind = str(noted["url"]), str(noted.get("vcs_info", {}).get("vcs", ""))
        url = urlsplit(address)
    except (AttributeError, ValueError, KeyError, TypeError):
        return _NAME, installer
    if url.scheme == "file" and not kind:
        path = url2pathname(url.path)
        return (path if Path(path).exists() else _NAME), installer
    return f"{_NAME} @ {kind}{'+' if kind else ''}{address}", installer


def require_extra(need: str, extra: str, *packages: str) -> None:
    """Raise ExtraMissing if one of the packages of an extra is not installed.

    Args:
        need: what needs the packages, such as `a mesh needs Dask`.
        extra: the name of the extra.
        packages: the names by which its packages are imported. None of them is imported here.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ExtraMissing(explain_extra(f"{need} ({' and '.join(missing)} missing here)", extra))


class LinkgaugeError(Exception):
    """Base of every error with a text for the user. A command that the error ends has this `exit_status`."""

    exit_status: ClassVar[int] = 3


# What the user asked for


class UsageError(LinkgaugeError):
    """The command line asks for something impossible: the text names what is possible."""

    exit_status = _USAGE_STATUS


class PlanError(LinkgaugeError):
    """A plan that cannot be run: names the field, its value, and what is allowed."""

    exit_status = _USAGE_STATUS

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = make_printable(str(value))
        self.allowed = allowed
        super().__init__(f"{field} {self.problem}")

    @property
    def problem(self) -> str:
        """The text without the field, for a dialog that shows its name."""
        return f"{self.value} is invalid; {self.allowed}".lstrip()


class InvalidLimitError(LinkgaugeError):
    """A limit that does not exist, or a value that it cannot have: names the possible ones."""

    exit_status = _USAGE_STATUS


class InvalidKeyError(LinkgaugeError):
    """A shared key that cannot be used: says why and what to do, and never contains the key."""

    exit_status = _USAGE_STATUS


class TlsError(LinkgaugeError):
    """A certificate or its key that cannot be used: names the files."""

    exit_status = _USAGE_STATUS


class UnknownPreset(LinkgaugeError):
    """No preset has this id; names the nearest ones."""

    exit_status = _USAGE_STATUS

    def __init__(self, preset_id: str, known: Sequence[str], matches: Sequence[str] = ()) -> None:
        nearest = matches or difflib.get_close_matches(preset_id.lower(), known, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(nearest)}?" if nearest else "see linkgauge presets list"
        super().__init__(f"preset {preset_id[:_MOST_SHOWN]!r} is not known; {hint}")
        self.nearest = tuple(nearest)


class DecodeError(LinkgaugeError):
    """A JSON value of the wrong type or out of range: names the place, the expectation and the value."""

    def __init__(self, where: str, expected: str, value: object) -> None:
        plain = value.value if isinstance(value, Enum) else value
        super().__init__(f"{where or 'value'}: expected {expected}, got {repr(plain)[:60]}")
        self.where = where


# The far end


class PeerError(LinkgaugeError):
    """The far end cannot be used."""


class PeerUnreachable(PeerError):
    """The name does not resolve, or nothing accepts the connection."""


class PeerNotLinkgauge(PeerError):
    """Something answers that is not a linkgauge endpoint."""


class PeerVersionMismatch(PeerError):
    """An endpoint of another protocol version."""


class PeerRefused(PeerError):
    """The endpoint declines, with its reason."""


class PeerKeyRequired(PeerRefused):
    """The endpoint asks for a key, and this end has none or another one."""


class PeerBusy(PeerRefused):
    """The endpoint has other tests, and no turn for this one. They end within `free_in_s`; None is unknown."""

    def __init__(self, text: str, free_in_s: int | None = None) -> None:
        super().__init__(text)
        self.free_in_s = free_in_s


class PeerLacksTurns(PeerError):
    """An endpoint of an earlier version: it cannot have one test alone, nor let one wait."""


class PeerUntrusted(PeerError):
    """The far end did not prove that it is the endpoint that was meant."""


class ConnectionTampered(PeerError):
    """A message between two ends with a key was changed, added, removed or moved on its way."""


class ConnectionClosed(PeerError):
    """The control connection ended, by the other end or by its network."""


class ConnectionSpent(ConnectionClosed):
    """The server closes a connection in order, after as many requests as it allows on each."""


# The control protocol


class SilentPeer(ConnectionClosed):
    """The other end has sent nothing, or not enough, before a deadline."""


class ServerEnded(PeerError):
    """The iperf3 server ends the test: it was stopped, or it gives a reason."""


class ProtocolError(LinkgaugeError):
    """A broken rule of the control protocol."""


class LocalProtocolError(ProtocolError):
    """This end broke a rule: a bug of ours."""


class RemoteProtocolError(ProtocolError):
    """The other end broke a rule."""


class RequestDeclined(RemoteProtocolError):
    """A client asks for something that an endpoint does not do, now or ever. The client receives the text."""


class LimitReached(RequestDeclined):
    """A client asks for more than an endpoint allows: names the limit."""

    def __init__(self, text: str, limit: str, value: object) -> None:
        super().__init__(f"{text} (its limit {limit} is {value})")
        self.limit = limit


class EndpointBusy(RequestDeclined):
    """A client asks for a test beside others, or beside one that has the endpoint for itself.

    Those end within `free_in_s` seconds; None if one of them has no end.
    """

    def __init__(self, text: str, free_in_s: int | None = None) -> None:
        super().__init__(text)
        self.free_in_s = free_in_s


class AddressRefused(RequestDeclined):
    """A client whose address the operator's lists exclude. The client does not learn which list it was.

    `operator_text` is for the endpoint's own log.
    """

    def __init__(self, address: str, limit: str, networks: Sequence[str]) -> None:
        super().__init__("it does not serve your address")
        self.limit = limit
        excluded = "denied" if limit == "deny" else "not allowed"
        self.operator_text = f"{address} is {excluded} (limit {limit} is {', '.join(networks)})"


# This host


class Iperf3Refusal(LinkgaugeError):
    """A test that our iperf3 service refuses or ends, with the number that its client receives.

    The text is for the endpoint's log: it names the request and the limit.
    """

    def __init__(self, number: int, text: str, system_errno: int = 0) -> None:
        super().__init__(text)
        self.number = number
        self.system_errno = system_errno


class WorkerError(LinkgaugeError):
    """A worker process did not start, or ended by itself."""


class EndpointError(LinkgaugeError):
    """The endpoint cannot listen at its address."""


class LabError(LinkgaugeError):
    """A lab could not be built: names the failed step and the remedy."""


class LabUnavailable(LabError):
    """This machine, or this user on it, cannot have labs at all: says why, and names a remedy."""


class ClusterError(LinkgaugeError):
    """The hosts of a mesh cannot be used: no scheduler answers, or its workers are not as a mesh needs them."""


class TooFewHosts(ClusterError):
    """Fewer than two hosts of a mesh can be used: which can (Host), and why the others cannot (HostLost)."""

    def __init__(self, text: str, found: Iterable[Any], lost: Iterable[Any]) -> None:
        super().__init__(text)
        self.found, self.lost = tuple(found), tuple(lost)


class ExtraMissing(LinkgaugeError):
    """This installation lacks the packages of an extra: names the command that installs them."""


class RunLogError(LinkgaugeError):
    """The run log cannot be read or written."""


class RunLogLocked(RunLogError):
    """Another process has the run log locked for longer than a commit takes: the same may succeed later."""


class RunLogFull(RunLogError):
    """The disk of the run log is full: the same may succeed later."""


class UnknownRun(RunLogError):
    """No run of the log has this id, or several have this beginning of one."""


class PreferencesNotSaved(LinkgaugeError):
    """The settings could not be written: names the file and the cause."""


class OutputError(LinkgaugeError):
    """A result could not be written to stdout, or metrics to their destination: names the cause."""
