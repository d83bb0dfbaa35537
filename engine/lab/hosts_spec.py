"""The specification of emulated hosts: each host's link, and the racks that trunks join. Pure."""

from dataclasses import dataclass
from typing import Final

from ..model.errors import PlanError
from .link_spec import LabLink

MIN_LAB_HOSTS: Final = 2
MAX_LAB_HOSTS: Final = 64  # each is a Dask worker of 60 MB
MAX_LAB_RACKS: Final = 16
HUB_ADDRESS: Final = "198.18.0.1"
"""The keeper's own address: of the scheduler, and of commands in the lab."""
MESH_PREFIX_BITS: Final = 16


@dataclass(frozen=True, slots=True)
class LabHost:
    """An emulated host. `sends` is its link in the direction away from it, `receives` in the other one."""

    name: str
    rack: str
    sends: LabLink
    receives: LabLink


@dataclass(frozen=True, slots=True)
class LabTrunk:
    """The link from a rack to the others: `sends` is the direction away from the rack, `receives` the other one."""

    rack: str
    sends: LabLink
    receives: LabLink


@dataclass(frozen=True, slots=True)
class MeshLabSpec:
    """Hosts to build, each a network namespace. The hosts of a rack share a switch, and trunks join the switches.

    There is a trunk for each rack, and none if there is one rack.
    """

    hosts: tuple[LabHost, ...]
    trunks: tuple[LabTrunk, ...] = ()

    def __post_init__(self) -> None:
        """Check numbers, names and links; raise PlanError."""
        if not MIN_LAB_HOSTS <= len(self.hosts) <= MAX_LAB_HOSTS:
            raise PlanError("hosts", str(len(self.hosts)), f"a lab builds {MIN_LAB_HOSTS} to {MAX_LAB_HOSTS} hosts")
        if len({host.name for host in self.hosts}) < len(self.hosts):
            raise PlanError("hosts", "a name that two have", "give each host its own name")
        racks = self.racks
        if len(racks) > MAX_LAB_RACKS:
            raise PlanError("racks", str(len(racks)), f"a lab builds up to {MAX_LAB_RACKS} racks")
        if sorted(trunk.rack for trunk in self.trunks) != sorted(racks if len(racks) > 1 else ()):
            raise PlanError("trunks", str(len(self.trunks)), "give one for each rack, and none for one rack")
        if any(link.needs_relay for end in (*self.hosts, *self.trunks) for link in (end.sends, end.receives)):
            raise PlanError(
                "link", "half duplex, delay or loss", "a lab of hosts builds full duplex without them, as 100mb-fd"
            )

    @property
    def racks(self) -> tuple[str, ...]:
        """The racks, in the order of their first hosts."""
        return tuple(dict.fromkeys(host.rack for host in self.hosts))

    @property
    def has_offloads_off(self) -> bool:
        """Whether the hosts' devices have no offloads."""
        return any(host.sends.has_offloads_off for host in self.hosts)

    def address(self, name: str) -> str:
        """Return the address of a host: 198.18.2.1 is the first host of the second rack. KeyError without one."""
        host = next((host for host in self.hosts if host.name == name), None)
        if host is None:
            raise KeyError(name)
        mates = [each.name for each in self.hosts if each.rack == host.rack]
        return f"198.18.{1 + self.racks.index(host.rack)}.{1 + mates.index(name)}"
