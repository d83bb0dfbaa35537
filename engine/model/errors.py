"""What can go wrong, as one tree; every text names the thing, the place and the remedy.

LinkgaugeError
├── PlanError            what was asked for cannot be done (the command line is wrong: exit 2)
├── PeerError            the far end cannot be used (the test could not be run: exit 3)
│   ├── PeerUnreachable  the name does not resolve, the connection is refused or times out
│   ├── PeerNotLinkgauge      something answered, but it is not a linkgauge endpoint
│   ├── PeerVersion      an endpoint answered, of another protocol version
│   ├── PeerRefused      an endpoint answered and declined, with its reason
│   │   └── PeerWantsKey it asks for a key, and there is none, or not the right one
│   └── PeerUntrusted    it did not prove that it is the endpoint that was meant
├── ProtocolError        a broken rule of the control protocol
│   ├── LocalProtocolError   by this end: a bug of ours
│   └── RemoteProtocolError  by the other end
│       └── Declined         it asks for what this end does not do; it is told so
│           └── LimitReached     more than a limit allows, which is named
├── WorkerError          a worker process did not start or ended by itself
└── StoreError           the run log cannot be read, or has no such run
"""

import difflib
from collections.abc import Sequence


class LinkgaugeError(Exception):
    """Anything that linkgauge itself has to say to a person."""


class PlanError(LinkgaugeError):
    """A plan that cannot be: names the field, what was given, and what is allowed."""

    def __init__(self, field: str, given: object, allowed: str) -> None:
        super().__init__(f"{field}: {given} is not possible; {allowed}")
        self.field = field


class PeerError(LinkgaugeError):
    """The far end cannot be used."""


class PeerUnreachable(PeerError):
    """The name does not resolve, or nothing accepts the connection."""


class PeerNotLinkgauge(PeerError):
    """Something answered that is not a linkgauge endpoint."""


class PeerVersionMismatch(PeerError):
    """An endpoint of another protocol version."""


class PeerRefused(PeerError):
    """The endpoint declined, with its reason."""


class PeerKeyRequired(PeerRefused):
    """The endpoint asks for a key that this end has not, or has another one."""


class PeerUntrusted(PeerError):
    """Who answers has not proved to be the endpoint that was meant."""


class ProtocolError(LinkgaugeError):
    """A broken rule of the control protocol."""


class LocalProtocolError(ProtocolError):
    """This end broke a rule: a bug of ours."""


class RemoteProtocolError(ProtocolError):
    """The other end broke a rule."""


class RequestDeclined(RemoteProtocolError):
    """A client asks for what an endpoint does not do, now or ever; it is told so."""


class LimitReached(RequestDeclined):
    """A client asks for more than an endpoint allows: names the limit."""

    def __init__(self, text: str, limit: str, value: object) -> None:
        super().__init__(f"{text} (its limit {limit} is {value})")
        self.limit = limit


class WorkerError(LinkgaugeError):
    """A worker process did not start, or ended by itself."""


class RunLogError(LinkgaugeError):
    """The run log cannot be read or written, or has no such run."""


class DecodeError(LinkgaugeError):
    """A JSON value that is not what it should be: says where, what was expected, and what came."""

    def __init__(self, where: str, expected: str, got: object) -> None:
        shown = repr(got)
        super().__init__(f"{where or 'value'}: expected {expected}, got {shown[:60]}")
        self.where = where


class EndpointError(LinkgaugeError):
    """The endpoint cannot listen where it was asked to."""


class LabError(LinkgaugeError):
    """A lab could not be built; names the step that failed and what to do."""


class LabUnavailable(LabError):
    """This machine, or this user on it, cannot have labs at all; says why, and what would help."""


class InvalidLimitError(LinkgaugeError):
    """A limit that there is none of, or a value that it cannot have: says which there are."""


class ConnectionClosed(PeerError):
    """The control connection ended, from the other side or by its network."""


class TlsError(LinkgaugeError):
    """A certificate or its key that cannot be used: names the files."""


class UnknownPreset(LinkgaugeError):
    """No preset has this id; names the nearest ones."""

    def __init__(self, preset_id: str, known: Sequence[str]) -> None:
        near = difflib.get_close_matches(preset_id.lower(), known, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "see linkgauge presets list"
        super().__init__(f"preset {preset_id!r} is not known; {hint}")
        self.nearest = tuple(near)


class UsageError(LinkgaugeError):
    """The command line asks for something that cannot be: the text says what can."""


class PreferencesNotSaved(LinkgaugeError):
    """The settings could not be written: says where to, and why."""
