"""The check of every request of a client over HTTP, in any version: its address, its host, its origin, its key."""

from ....engine.far.status import LogEntry, rejection
from ....engine.model.errors import AddressRefused
from .link_access import LinkAccess
from .open_page import PageHost


def find_problem(
    host: PageHost,
    access: LinkAccess,
    client: str,
    named: tuple[str, str | None],
    token: str,
    *,
    is_websocket: bool = False,
) -> str | None:
    """Return why a request is refused, after a line in the log; None if it is answered.

    Args:
        host: The program that serves pages.
        access: The rules.
        client: The address of the client.
        named: The Host header, and the Origin header or None.
        token: The token of the path; empty without one.
        is_websocket: Whether the request opens a WebSocket.
    """
    try:
        host.check_address(client)
    except AddressRefused as error:
        host.log(rejection(client, error))
        return "this endpoint does not serve your address"
    refusal = access.find_refusal(*named, token, is_websocket=is_websocket)
    if refusal is not None:
        host.log(LogEntry("dropped", f"rejected: a browser's request: {refusal}", client=client or None))
    return refusal
