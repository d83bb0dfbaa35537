"""Peers: the address of a far end, as `host[:port]`, `loopback`, or with a scheme such as `ssh://…`.

Pure: nothing is resolved or connected here. A host has many spellings, so keys and lists of peers compare
`Peer.identity`.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Final, Self

from .errors import PlanError
from .ip_address import IpVersion, canonical_host, check_zone, parse_ip_address
from .serialization import OMITTED_AT_DEFAULT
from .shared_key import NO_ACCESS, Access, SharedKey
from .speed_server import SpeedServer, split_speed_address

IPERF3_PASSWORD_VARIABLE: Final = "IPERF3_PASSWORD"  # noqa: S105 - the name of a variable
DEFAULT_PORT: Final = 5820
SSH_SCHEME: Final = "ssh://"
IPERF3_SCHEME: Final = "iperf3://"
IPERF3_PORT: Final = 5201
BROWSER_SCHEME: Final = "browser://"
QUALITY_SCHEME: Final = "networkquality://"
_MAX_PORT_DIGITS: Final = 5
_PEER_FORMS: Final = "give HOST, HOST:PORT, [IPv6]:PORT or loopback"
_ALLOWED: Final = "give ssh://[user@]host[:port]"
# ssh would take a name with a leading dash for an option, and before 9.6 it passes characters with a meaning for
# the shell on to a ProxyCommand. No name of a user or host has one of these characters; a domain's user has a
# backslash.
_NOT_IN_SSH_NAME: Final = r"\s@:/\[\]'`\"$;&<>|(){}"
_USER: Final = re.compile(rf"[^-{_NOT_IN_SSH_NAME}][^{_NOT_IN_SSH_NAME}]{{0,254}}(?<!\\)")
_HOST: Final = re.compile(rf"[^-\\{_NOT_IN_SSH_NAME}][^\\{_NOT_IN_SSH_NAME}]{{0,252}}")
_IPV6: Final = re.compile(rf"[0-9A-Fa-f:.]{{2,45}}(%[^\\{_NOT_IN_SSH_NAME}]{{1,15}})?")


@dataclass(frozen=True, slots=True)
class SshSettings:
    """How to start a far end through ssh; None leaves a setting to ssh.

    `port` is ssh's own. `command` is the program with its options; it is split as a shell would. The far end
    listens for data connections on `data_port`, or on a free port; with `is_data_tunneled` ssh carries those as
    well.
    """

    user: str | None = None
    port: int | None = None
    command: str | None = None
    data_port: int | None = None
    is_data_tunneled: bool = False


@dataclass(frozen=True, slots=True)
class Iperf3Login:
    """The password of a user of an iperf3 server, and the server's public RSA key (PEM).

    Servers before 3.17 need the padding of PKCS #1 v1.5.
    """

    password: str = field(repr=False)
    public_key: bytes
    is_pkcs1: bool = False


@dataclass(frozen=True, slots=True)
class Iperf3Settings:
    """How to use an iperf3 server as the far end. `user` logs in there, if the server requires a login.

    `login` is None until it has been looked up.
    """

    user: str | None = None
    login: Iperf3Login | None = field(default=None, compare=False, repr=False)


def is_iperf3_address(text: str) -> bool:
    """Return whether the text is the address of an iperf3 server."""
    return text.strip().lower().startswith(IPERF3_SCHEME)


def is_ssh_address(text: str) -> bool:
    """Return whether the text is the address of a far end that ssh starts."""
    return text.strip().lower().startswith(SSH_SCHEME)


def parse_ssh_address(text: str) -> tuple[str, SshSettings]:
    """Return the host and how to start a far end there; raise PlanError if the text is not such an address."""
    rest = text.strip()[len(SSH_SCHEME) :].removesuffix("/")
    user, at, place = rest.rpartition("@")
    if at and _USER.fullmatch(user) is None:
        raise PlanError("peer", repr(text), f"{_ALLOWED}; ssh asks for a password itself")
    if place.startswith("["):
        host, bracket, port = place[1:].partition("]")
        if not bracket or (port and not port.startswith(":")) or _IPV6.fullmatch(host) is None:
            raise PlanError("peer", repr(text), "write an IPv6 address as ssh://[address] or ssh://[address]:port")
        port = port[1:]
    else:
        host, _, port = place.partition(":")
        if _HOST.fullmatch(host) is None or not host.isprintable():
            raise PlanError("peer", repr(text), _ALLOWED)
    if port and not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65_535):
        raise PlanError("port", repr(port), "give a number from 1 to 65535")
    return host, SshSettings(user or None, int(port) if port else None)


def format_ssh_address(host: str, ssh: SshSettings) -> str:
    """Return the address as a user writes it."""
    user = f"{ssh.user}@" if ssh.user else ""
    port = f":{ssh.port}" if ssh.port else ""
    return f"{SSH_SCHEME}{user}{f'[{host}]' if ':' in host else host}{port}"


@dataclass(frozen=True, slots=True)
class Peer:
    """The address of a far end: a host name or IP address, and a TCP port. `loopback` is an embedded endpoint.

    `access` is None until the key for this peer has been looked up. With `ssh`, the far end is started on that host
    and chooses its port itself. With `iperf3` the far end is an iperf3 server, with
    `speed` one for LibreSpeed or NDT7. `only_ip` limits a name to its
    addresses of that IP version. With `is_browser` the far end is a page that has come to this host's endpoint from
    there.
    """

    host: str
    port: int = DEFAULT_PORT
    access: Access | None = field(default=None, compare=False, repr=False)
    ssh: SshSettings | None = None
    iperf3: Iperf3Settings | None = None
    only_ip: IpVersion | None = field(default=None, metadata=OMITTED_AT_DEFAULT)
    is_browser: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    is_quality_client: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    speed: SpeedServer | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        """Raise PlanError for an impossible address."""
        if not self.host or any(c.isspace() or not c.isprintable() for c in self.host) or len(self.host) > 253:
            raise PlanError("peer", repr(self.host), _PEER_FORMS)
        check_zone("peer", self.host)
        check_port(self.port)

    def __str__(self) -> str:
        """Return `host:port`, IPv6 in brackets, or the address with the scheme of another program."""
        if self.ssh is not None:
            return format_ssh_address(self.host, self.ssh)
        place = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        if self.is_browser or self.is_quality_client:
            scheme = BROWSER_SCHEME if self.is_browser else QUALITY_SCHEME
            return f"{scheme}{f'[{self.host}]' if ':' in self.host else self.host}"
        if self.speed is not None:
            return f"{self.speed.scheme}{place}{self.speed.path.rstrip('/')}"
        if self.iperf3 is None:
            return place
        user = f"{self.iperf3.user}@" if self.iperf3.user else ""
        return f"{IPERF3_SCHEME}{user}{place}"

    @property
    def identity(self) -> tuple[str, int, SshSettings | None, Iperf3Settings | None, SpeedServer | None]:
        """The value to compare with another peer's: equal for two spellings of one host."""
        host = canonical_host(self.host) if self.ssh is None else self.host
        return host, self.port, self.ssh, self.iperf3, self.speed

    @property
    def is_foreign(self) -> bool:
        """Whether another program is at the far end, which knows nothing of linkgauge's control connection."""
        return self.iperf3 is not None or self.speed is not None or self.is_browser or self.is_quality_client

    @property
    def is_loopback(self) -> bool:
        """Whether it is the run's own embedded endpoint."""
        return self.host == "loopback" and self.ssh is None

    @property
    def shown(self) -> str:
        """The address as a user writes it: as text, but `loopback` without a port, which has no part in it."""
        return self.host if self.is_loopback else str(self)

    @property
    def ip_version(self) -> IpVersion | None:
        """The IP version of connections to it, by its address or `only_ip`; None for a name that may have both."""
        try:
            return parse_ip_address(self.host).version
        except ValueError:
            return self.only_ip

    def over_ip(self, version: IpVersion | None) -> Self:
        """Return this peer with its addresses of an IP version only; None means both versions.

        Raises PlanError for an address of the other version, and for IPv6 to the embedded endpoint.
        """
        own = 4 if self.is_loopback else replace(self, only_ip=None).ip_version
        if version is not None and own not in {None, version}:
            raise PlanError("IP version", version, f"{self.host} is an IPv{own} address: leave out -{version}")
        return replace(self, only_ip=version)

    def with_key(self, key: SharedKey) -> Self:
        """Return this peer with a key to prove there."""
        return replace(self, access=replace(self.access or NO_ACCESS, key=key))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `host`, `host:port`, an IPv6 address, `[address]:port`, `loopback`, or an address with a scheme.

        Raises PlanError if the text is none of these.
        """
        foreign = cls._parse_scheme(text)
        if foreign is not None:
            return foreign
        host, port = text.strip(), ""
        if host.startswith("["):
            host, bracket, rest = host[1:].partition("]")
            if not bracket or (rest and not rest.startswith(":")):
                raise PlanError("peer", repr(text), "write an IPv6 address with a port as [address]:port")
            port = rest[1:]
        elif host.count(":") == 1:
            host, _, port = host.partition(":")
        if not host:
            raise PlanError("peer", repr(text), _PEER_FORMS)
        if not port:
            return cls(host)
        if not (port.isascii() and port.isdigit() and len(port) <= _MAX_PORT_DIGITS):
            raise PlanError("port", repr(port[:20]), "give a number from 1 to 65535")
        return cls(host, int(port))

    @classmethod
    def _parse_scheme(cls, text: str) -> Self | None:
        """Read an address with a scheme; return None for one without."""
        if is_ssh_address(text):
            host, ssh = parse_ssh_address(text)
            return cls(host, ssh=ssh)
        if is_iperf3_address(text):
            return cls._parse_iperf3(text)
        speed = split_speed_address(text)
        if speed is not None:
            server, place = speed
            return cls._parse_foreign(text, place, f"{server.scheme}host[:port]", server.usual_port, server)
        if text.strip().lower().startswith((BROWSER_SCHEME, QUALITY_SCHEME)):
            raise PlanError("peer", repr(text), "such a client starts its test itself: linkgauge endpoint --http")
        return None

    @classmethod
    def _parse_iperf3(cls, text: str) -> Self:
        user, at, place = text.strip()[len(IPERF3_SCHEME) :].removesuffix("/").rpartition("@")
        if at and _USER.fullmatch(user) is None:
            raise PlanError("peer", repr(text), "give iperf3://[user@]host[:port]; the password comes separately")
        peer = cls._parse_foreign(text, place, "iperf3://[user@]host[:port]", IPERF3_PORT)
        return replace(peer, iperf3=Iperf3Settings(user or None))

    @classmethod
    def _parse_foreign(
        cls, text: str, place: str, form: str, usual_port: int, speed: SpeedServer | None = None
    ) -> Self:
        """Return the peer at `host[:port]`, with the usual port of its program if none is named."""
        peer = cls.parse(place) if place and "://" not in place else None
        if peer is None or peer.is_loopback:
            raise PlanError("peer", repr(text), f"give {form}")
        has_port = (place.startswith("[") and not place.endswith("]")) or place.count(":") == 1
        return cls(peer.host, peer.port if has_port else usual_port, speed=speed)


def check_port(port: int) -> int:
    """Return the port; raise PlanError if it is not a TCP port."""
    if not 1 <= port <= 65_535:
        raise PlanError("port", port, "give a number from 1 to 65535")
    return port


LOOPBACK: Final = Peer("loopback")
AWAITED_BROWSER: Final = Peer("waiting", is_browser=True)
"""The far end of an app that waits for the page of a browser, before one has joined."""
