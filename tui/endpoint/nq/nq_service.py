"""What clients of networkQuality ask for over HTTP/2: the configuration, small and large objects, uploads.

The four addresses are those of draft-ietf-ippm-responsiveness-09, "Responsiveness Test Server". Those of the
objects are new for each client, so that one test is one run, also behind a router that translates addresses. A
browser speaks HTTP/2 to the same port: it gets its page here, and opens its WebSockets over HTTP/1.1.
"""

import asyncio
import json
import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from ....engine.control.tls import HandshakeMemory
from ....engine.model.directions import Direction
from ....engine.model.errors import AddressRefused, EndpointBusy, LinkgaugeError
from ....engine.model.ip_address import client_network
from ...http.visitors import Visitors
from ..browser.browser_setup import WELL_KNOWN
from ..browser.link_access import LinkAccess
from ..browser.page_files import SCRIPT, PageFiles
from ..browser.request_check import find_problem
from .frame_guard import FrameBudget
from .http2_request import Answer, Request
from .nq_connection import NqConnection, Reply, Transfer
from .quality_client import MAX_CONNECTIONS, QualityClient, describe_program

if TYPE_CHECKING:
    from ..browser.page_client import EndpointPages

MAX_ALL_CONNECTIONS: Final = 2_048
_LOOK_S: Final = 0.25
_RETRY_S: Final = 10
_SMALL: Final = Answer(200, b"\0")
_PATH: Final = re.compile(
    r"/(?:(?P<token>[^/?]{1,100})/)?"
    r"(?P<tail>|mover\.js|\.well-known/nq|nq/(?P<client>[\w-]{1,64})/(?P<object>large|small|upload))(?:\?.*)?",
    re.ASCII,
)
_METHODS: Final = {"": ("GET", "HEAD"), SCRIPT: ("GET", "HEAD"), "upload": ("POST", "PUT")}
_FLOWS: Final = {"large": Direction.OUT, "upload": Direction.IN}


class NqService:
    """Answers the requests of all connections over HTTP/2.

    Args:
        pages: The endpoint, its keys, lists, log and run log.
        access: The rules by which a request is answered.
        page: The files of the page for browsers.
        visitors: The connections that have shown no token.
    """

    def __init__(self, pages: "EndpointPages", access: LinkAccess, page: PageFiles, visitors: Visitors) -> None:
        self._pages, self._access, self._page, self._visitors = pages, access, page, visitors
        self._clients: dict[str, QualityClient] = {}
        self._connections: dict[NqConnection, str] = {}  # and their networks
        self._budgets: dict[str, FrameBudget] = {}
        self._networks: Counter[str] = Counter()
        self.log = pages.log
        self._memory = HandshakeMemory()
        self._looking = asyncio.create_task(self._look())

    def make_connection(self) -> NqConnection:
        """Return the protocol of a connection whose client speaks HTTP/2."""
        return NqConnection(self)

    async def close(self) -> None:
        """End every test and every connection."""
        self._looking.cancel()
        self._memory.close()
        await asyncio.gather(*(client.close() for client in list(self._clients.values())))
        for connection in list(self._connections):
            connection.force_close()

    def budget_of(self, connection: NqConnection) -> FrameBudget:
        """Return what the connections of an address may send; this one counts from now on."""
        network = client_network(connection.address)
        self._connections[connection] = network
        self._networks[network] += 1
        return self._budgets.setdefault(network, FrameBudget(time.monotonic_ns()))

    def forget(self, connection: NqConnection) -> None:
        """Forget a connection that has gone."""
        network = self._connections.pop(connection, None)
        self._memory.note_end()
        self._visitors.forget(connection)
        if network is None:
            return
        self._networks[network] -= 1
        if not self._networks[network]:
            del self._networks[network], self._budgets[network]

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            now_ns = time.monotonic_ns()
            for connection in list(self._connections):
                connection.look(now_ns)

    def reply(self, connection: NqConnection, request: Request) -> Reply:
        """Return the answer to a request, or what it moves."""
        found = _PATH.fullmatch(request.path)
        token = "" if found is None else found["token"] or ""
        problem = find_problem(
            self._pages, self._access, connection.address, (request.authority, request.origin), token
        )
        if problem is not None:
            return Answer.of_text(403, problem)
        if found is None:
            return Answer.of_text(404, "there is nothing at this address")
        methods = _METHODS.get(found["object"] or found["tail"], ("GET",))
        if request.method not in methods:
            return Answer.of_text(405, f"this address takes {' and '.join(methods)} only")
        if found["client"]:
            return self._reply_in_test(connection, found["client"], found["object"])
        if found["tail"] == WELL_KNOWN:
            return self._begin_test(connection, request, token)
        text, kind, headers = self._page.read(found["tail"], request.authority)
        return Answer(
            200, text.encode(), kind, tuple((name.lower(), value) for name, value in headers.items()), closes=True
        )

    async def _begin_test(self, connection: NqConnection, request: Request, token: str) -> Answer:
        """Give a client its place, and the addresses of its objects."""
        if len(self._connections) > MAX_ALL_CONNECTIONS:
            return Answer.of_text(429, "too many connections are open here; try again later", _RETRY_S)
        key = self._access.find_key(token)
        name = None if key is None else key.name or None
        client = QualityClient(self._pages, connection, name, describe_program(request.user_agent))
        self._clients[client.token] = client
        client.on_end = lambda: self._clients.pop(client.token, None)
        try:
            await client.enter()
        except AddressRefused as error:
            return Answer.of_text(403, str(error))
        except LinkgaugeError as error:
            free_in_s = error.free_in_s if isinstance(error, EndpointBusy) else None
            return Answer.of_text(429, str(error), max(1, free_in_s or _RETRY_S))
        self._visitors.trust(connection)
        client.touch(connection)
        base = "/".join(filter(None, (f"https://{request.authority}", token, "nq", client.token)))
        return Answer(200, json.dumps(_configuration(base)).encode(), "application/json")

    def _reply_in_test(self, connection: NqConnection, token: str, what: str) -> Reply:
        client = self._clients.get(token)
        if client is None or client.is_over or client.address != connection.address:
            return Answer.of_text(429, "no test of this address is here; ask for the configuration once more", 1)
        if connection not in client.connections and not _make_room(client):
            return Answer.of_text(429, "this client has too many connections open", 1)
        self._visitors.trust(connection)
        load = client.touch(connection)
        if what == "small":
            return _SMALL
        direction = _FLOWS[what]
        if not client.has_room(direction):
            return Answer.of_text(429, "this client has too many transfers open", 1, closes=False)
        return Transfer(load, direction)


def _make_room(client: QualityClient) -> bool:
    """Return whether a client may have one more connection: the oldest that awaits nothing makes room."""
    if len(client.connections) < MAX_CONNECTIONS:
        return True
    idle = next((connection for connection in client.connections if connection.is_idle), None)
    if idle is not None:
        idle.close()
    return idle is not None


def _configuration(base: str) -> dict[str, object]:
    """Return the document of the well-known address.

    The draft names the last three members; clients read the first three, the names of its earlier versions.
    """
    large, small, upload = (f"{base}/{name}" for name in ("large", "small", "upload"))
    urls = {
        "large_https_download_url": large,
        "small_https_download_url": small,
        "https_upload_url": upload,
        "large_download_url": large,
        "small_download_url": small,
        "upload_url": upload,
    }
    return {"version": 1, "urls": urls}
