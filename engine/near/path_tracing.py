"""The near end's trace of the path during a run: its socket, opened as a UDP session, and the far end's trace."""

import socket
from dataclasses import replace
from typing import Final

from ..control.connection import ControlConnection
from ..model.counters.path_trace import PathTrace
from ..model.directions import Direction, End
from ..model.errors import RemoteProtocolError, explain_os_error
from ..model.events import PathTraced
from ..model.plan import PATH_PROBE_SESSION, Plan
from ..model.texts.warning_text import WarningText
from ..path.hop_prober import HopProber, path_secrets
from ..workloads.datagram_handshake import connect_datagrams
from ..workloads.session_handshake import ConnectTarget, SessionSpec
from ..workloads.sockets import set_dscp
from .run_events import RunEvents

_OPEN_DEADLINE_S: Final = 1.0  # for each of the two steps of the handshake


class PathTracing:
    """Traces from `open` to `close`, if the plan asks for it. The traces of both ends become events.

    Args:
        plan: The run's plan.
        control: The connection to the far end.
        events: The run's events.
    """

    def __init__(self, plan: Plan, control: ControlConnection, events: RunEvents) -> None:
        self._plan, self._control, self._events = plan, control, events
        self._prober: HopProber | None = None
        self._is_loaded = False
        self._has_far_trace = False

    async def open(self, nonce_hex: str) -> None:
        """Begin to trace once the far end has accepted; warn if it does not. The run goes on in any case."""
        if not self._plan.path:
            return
        secret = self._control.derive_run_secret(bytes.fromhex(nonce_hex))
        secrets = path_secrets(secret, End.NEAR)
        spec = SessionSpec(Direction.OUT, PATH_PROBE_SESSION, 0, None, secrets[0].hex())
        target = ConnectTarget.from_address(secret.run_tag.hex(), self._control.data_address)
        target = replace(target, local_port=_free_port(self._plan.path_port, target.family))
        sock = socket.socket(target.family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            if self._plan.socket.dscp is not None:
                set_dscp(sock, self._plan.socket.dscp)
            await connect_datagrams(sock, spec, target, self._plan.socket, _OPEN_DEADLINE_S, _OPEN_DEADLINE_S)
            self._prober = HopProber(sock, End.NEAR, secrets)
        except OSError as error:
            sock.close()
            self._events.warn(WarningText.PATH_UNTRACED.format(reason=explain_os_error(error)))
        except BaseException:
            sock.close()
            raise

    def begin_load(self) -> None:
        """Note that payload begins to flow."""
        if self._prober is not None:
            self._prober.begin_load()
            self._is_loaded = True

    def trace_so_far(self) -> PathTrace | None:
        """Return this end's trace of a run in progress; None before payload flows, or if nothing is traced."""
        return self._prober.take_trace() if self._prober is not None and self._is_loaded else None

    def take_far_trace(self, trace: PathTrace) -> None:
        """Emit the far end's trace; raise RemoteProtocolError for one too many."""
        if not self._plan.path or self._has_far_trace:
            raise RemoteProtocolError("the remote host sent a trace of the path that was not requested")
        self._has_far_trace = True
        self._events.put(PathTraced(trace))

    def end(self) -> None:
        """Emit this end's trace, and send no more probes: the far end is about to forget their socket."""
        if self._prober is not None:
            self._prober.stop()
            self._events.put(PathTraced(self._prober.take_trace()))

    def close(self) -> None:
        """Send no more."""
        if self._prober is not None:
            self._prober.close()


def _free_port(port: int | None, family: socket.AddressFamily) -> int | None:
    """Return the UDP port if nothing uses it: of two sockets with the same ports, one would get no answer."""
    if port is None:
        return None
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind(("", port))
        except OSError:
            return None
    return port
