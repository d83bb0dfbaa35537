"""An endpoint in this process as its screen sees it: its fixed texts, its status, its log, reload and shutdown."""

import asyncio
import socket
from collections.abc import Callable

from ...engine.control.tls import format_fingerprint
from ...engine.far.endpoint import Endpoint
from ...engine.far.status import EndpointStatus
from ...engine.model.shared_key import KEY_VARIABLE
from .browser.link_code import code_lines
from .endpoint_log import EndpointLog
from .endpoint_rates import EndpointInfo
from .endpoint_setup import EndpointConfig, EndpointSetup, drain, reload


class ServedEndpoint:
    """The endpoint that the screen polls, and that the user ends there.

    Args:
        config: The endpoint's configuration.
        setup: Its listener, key and certificate.
        endpoint: The endpoint itself.
        log: The lines that the screen shows.
    """

    def __init__(self, config: EndpointConfig, setup: EndpointSetup, endpoint: Endpoint, log: EndpointLog) -> None:
        self.info = endpoint_info(config, setup)
        self.log = log
        self.on_end: Callable[[], object] = lambda: None
        """Called once a shutdown is over."""
        self._config, self._setup, self._endpoint = config, setup, endpoint
        self._at_once = asyncio.Event()
        self._draining: asyncio.Task[None] | None = None

    def status(self) -> EndpointStatus:
        """Return its clients, limits and totals now."""
        return self._endpoint.get_status()

    def reload(self) -> None:
        """Read the limits, the keys, the certificate and the users of iperf3 again."""
        reload(self._config, self._setup, self._endpoint, self.log.append_entry)

    def shut_down(self) -> None:
        """End the endpoint once its runs have ended; a second call ends it at once."""
        if self._draining is not None:
            self._at_once.set()
        else:
            self._draining = asyncio.create_task(self._drain())

    async def finish(self) -> None:
        """Wait for a shutdown in progress. There is none if the screen failed."""
        if self._draining is not None:
            await self._draining

    async def _drain(self) -> None:
        await drain(self._endpoint, self._at_once, self.log.append_entry)
        self.on_end()


def endpoint_info(config: EndpointConfig, setup: EndpointSetup) -> EndpointInfo:
    """Return the texts of the screen that do not change while the endpoint serves."""
    hint = ""
    if setup.keys is None:
        access_policy = (
            "▲ open: no key required" if config.is_open else "no key required: only this host can connect"
        )
    elif setup.new_key is not None:
        access_policy = "key required: new at this start, y copies it"
    else:
        which = "the one" if len(setup.keys) == 1 else "one of those"
        access_policy = f"key required: {which} in {setup.key_file or KEY_VARIABLE}"
        hint = "it needs the key there: LINKGAUGE_KEY, --key-file or the keys file"
    peers = setup.find_peers()
    page = None if setup.browser is None else setup.browser.links(setup.keys)[0]
    return EndpointInfo(
        hostname=socket.gethostname(),
        address=", ".join(peers),
        access_policy=access_policy,
        command=setup.near_command(peers[0]),
        tls=None if setup.certificate is None else format_fingerprint(setup.certificate.fingerprint),
        hint=hint,
        can_reload=any((config.limits.file, setup.key_file, config.tls, setup.iperf3 and setup.iperf3.users)),
        is_loopback=setup.is_loopback,
        iperf3=None if setup.iperf3 is None else f"port {setup.iperf3.port}, {setup.iperf3.access}",
        page=page,
        page_code=() if page is None else tuple(code_lines(page)),
    )
