"""The clients that an endpoint serves, each with at most one run."""

from ...model.ip_address import client_network
from ..memory_estimate import SessionWindows
from ..status import ClientStatus
from .current_run import CurrentRun


class AdmittedClient:
    """A client that the endpoint serves. `run` is set while the client has one.

    `software` names a client that is not a linkgauge.
    """

    def __init__(self, number: int, address: str, since_ns: int, *, is_iperf3: bool = False) -> None:
        self.address = address  # empty without a network connection
        self.number, self._since_ns, self.is_iperf3 = number, since_ns, is_iperf3
        self.network = client_network(address)
        self.windows: SessionWindows = {}  # of all sessions that its run may have open, each the largest one
        self.memory_bytes = 0  # reserved for them
        self.samples_s = 0
        self.hostname: str | None = None
        self.key_name: str | None = None  # of the key that it proved
        self.software: str | None = None
        self.run: CurrentRun | None = None

    def has_share_with(self, other: "AdmittedClient") -> bool:
        """Whether both count for the same limits of an address."""
        return (self.network, self.is_iperf3) == (other.network, other.is_iperf3)

    def get_status(self) -> ClientStatus:
        """Return the client's status at this moment."""
        run = None if self.run is None else self.run.get_status()
        return ClientStatus(
            self.number,
            self.address,
            self.hostname,
            self._since_ns,
            run,
            self.software,
            self.key_name,
            self.is_iperf3,
        )
