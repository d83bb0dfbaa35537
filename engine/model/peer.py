"""Peers: the address of a far end (`host[:port]`, `ssh://…`, `iperf3://…`, `loopback`), and its key.

Pure: nothing is resolved or connected here, and randomness is an argument. A socket that serves both families
writes an IPv4 address as IPv6 (`::ffff:192.0.2.1`, RFC 4291, section 2.5.5.2), and a link-local address carries its
interface (`fe80::1%eth0`, RFC 4007). Rules about addresses (networks, loopback, family) apply to the address
without either. A host has many spellings, so keys and lists of peers compare `Peer.identity`. How the key is proved
on a connection is described in protocol/auth.py.
"""

import hmac
import re
import secrets
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, Literal, Self

from .errors import InvalidKeyError, PlanError
from .serialization import OMITTED_AT_DEFAULT

KEY_VARIABLE: Final = "LINKGAUGE_KEY"
IPERF3_PASSWORD_VARIABLE: Final = "IPERF3_PASSWORD"  # noqa: S105 - the name of a variable
MIN_KEY_CHARACTERS: Final = 16
MAX_KEY_CHARACTERS: Final = 1_024
_KEY: Final = re.compile(r"[!-~]+", re.ASCII)
_NEW_KEY_BYTES: Final = 24
_LENGTH: Final = struct.Struct(">I")


class SharedKey:
    """The key that both ends share. Only `reveal` returns its text: nothing prints it by accident."""

    __slots__ = ("_secret", "_text")

    def __init__(self, text: str) -> None:
        if not MIN_KEY_CHARACTERS <= len(text) <= MAX_KEY_CHARACTERS or not _KEY.fullmatch(text):
            raise InvalidKeyError(
                f"a key is {MIN_KEY_CHARACTERS} to {MAX_KEY_CHARACTERS} letters, digits and signs without spaces; "
                "make one with: openssl rand -hex 24"
            )
        self._text = text
        self._secret = mac(b"linkgauge key", text.encode())

    @classmethod
    def generate(cls, random_text: Callable[[int], str] = secrets.token_urlsafe) -> Self:
        """Return a new random key."""
        # It begins with a letter: no shell or command line takes it for an option.
        return cls("k" + random_text(_NEW_KEY_BYTES))

    def __repr__(self) -> str:
        return "Key(…)"

    def reveal(self) -> str:
        """Return the text, to be entered at the other end."""
        return self._text

    def prove(self, role: bytes, context: "AuthContext") -> bytes:
        """Return the proof that its sender holds the key, valid for one role in one conversation."""
        return mac(self._secret, b"proof", role, context.transcript, context.channel_binding)

    def derive_shared_secret(self, context: "AuthContext") -> bytes:
        """Return the secret that only the two ends of this conversation can compute."""
        return mac(self._secret, b"session", context.transcript, context.channel_binding)


@dataclass(frozen=True, slots=True)
class AuthContext:
    """A conversation to prove a key over: the bytes before the first proof, and the TLS fingerprint."""

    transcript: bytes
    channel_binding: bytes = b""


@dataclass(frozen=True, slots=True)
class Access:
    """A near end's key for an endpoint, and what it requires there.

    With a `key` it refuses an endpoint that does not ask for one, unless `may_be_open`. `fingerprint` is
    the SHA-256 of the certificate that the endpoint must have: the control connection is then TLS.
    """

    key: SharedKey | None = None
    may_be_open: bool = False
    fingerprint: bytes | None = None


NO_ACCESS: Final = Access()


def mac(key: bytes, *parts: bytes) -> bytes:
    """Return the HMAC-SHA-256 of parts. Each goes in with its length, so different lists are different bytes."""
    return hmac.digest(key, b"".join(_LENGTH.pack(len(part)) + part for part in parts), "sha256")


IpAddress = IPv4Address | IPv6Address
IpVersion = Literal[4, 6]

DEFAULT_PORT: Final = 5820
SSH_SCHEME: Final = "ssh://"
IPERF3_SCHEME: Final = "iperf3://"
IPERF3_PORT: Final = 5201
_MOST_PORT_DIGITS: Final = 5
_PEER_FORMS: Final = "give HOST, HOST:PORT, [IPv6]:PORT or loopback"
_ALLOWED: Final = "give ssh://[user@]host[:port]"
# ssh would take a name with a leading dash for an option, and before 9.6 it passes on to a ProxyCommand what a
# shell takes for its own. No name of a user or host has one of these characters; a domain's user has a backslash.
_NOT_IN_SSH_NAME: Final = r"\s@:/\[\]'`\"$;&<>|(){}"
_USER: Final = re.compile(rf"[^-{_NOT_IN_SSH_NAME}][^{_NOT_IN_SSH_NAME}]{{0,254}}(?<!\\)")
_HOST: Final = re.compile(rf"[^-\\{_NOT_IN_SSH_NAME}][^\\{_NOT_IN_SSH_NAME}]{{0,252}}")
_IPV4_PART: Final = re.compile(r"0x[0-9a-f]{1,8}|0[0-7]{0,11}|[1-9][0-9]{0,9}", re.ASCII)
_IPV4_PARTS: Final = 4
_BYTE: Final = 255
_CLIENT_PREFIX_BITS: Final = 64  # what a site gives to a link (RFC 4291, section 2.5.4)
_IPV6: Final = re.compile(rf"[0-9A-Fa-f:.]{{2,45}}(%[^\\{_NOT_IN_SSH_NAME}]{{1,15}})?")
# The name of an interface, as the kernel allows it, and without the characters that end an address in a peer.
_NOT_IN_ZONE: Final = frozenset("/:[]")  # the kernel refuses the first two, and an address ends at a bracket
_MOST_ZONE_BYTES: Final = 15  # IFNAMSIZ with its zero byte


@dataclass(frozen=True, slots=True)
class SshSettings:
    """How to start a far end through ssh; None leaves a setting to ssh.

    `port` is ssh's own. `command` is the program with its options, as a shell would split it. The far end listens
    for data connections on `data_port`, or on a free port; with `is_data_tunneled` ssh carries those as well.
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
    """How to use an iperf3 server as the far end. `user` logs in there, where the server asks for a user.

    `login` is None until it has been looked up.
    """

    user: str | None = None
    login: Iperf3Login | None = field(default=None, compare=False, repr=False)


def is_iperf3_address(text: str) -> bool:
    """Return whether the text is the address of an iperf3 server."""
    return text.strip().lower().startswith(IPERF3_SCHEME)


def is_ssh_address(text: str) -> bool:
    """Return whether the text is an address of a far end to be started through ssh."""
    return text.strip().lower().startswith(SSH_SCHEME)


def parse_ssh_address(text: str) -> tuple[str, SshSettings]:
    """Return the host and how to start a far end there; raise PlanError where the text is no such address."""
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
    """Return the address as a person writes it."""
    user = f"{ssh.user}@" if ssh.user else ""
    port = f":{ssh.port}" if ssh.port else ""
    return f"{SSH_SCHEME}{user}{f'[{host}]' if ':' in host else host}{port}"


@dataclass(frozen=True, slots=True)
class Peer:
    """The address of a far end: a host name or IP address, and a TCP port. `loopback` is an embedded endpoint.

    `access` is None until the key for this peer has been looked up. With `ssh`, the far end is started on that host
    and chooses its port itself. With `iperf3` the far end is an iperf3 server. `only_ip` leaves a name only its
    addresses of that IP version.
    """

    host: str
    port: int = DEFAULT_PORT
    access: Access | None = field(default=None, compare=False, repr=False)
    ssh: SshSettings | None = None
    iperf3: Iperf3Settings | None = None
    only_ip: IpVersion | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        """Raise PlanError for an impossible address."""
        if not self.host or any(c.isspace() or not c.isprintable() for c in self.host) or len(self.host) > 253:
            raise PlanError("peer", repr(self.host), _PEER_FORMS)
        check_zone("peer", self.host)
        check_port(self.port)

    def __str__(self) -> str:
        """Return `host:port`, with an IPv6 address in brackets, `ssh://…` or `iperf3://…`."""
        if self.ssh is not None:
            return format_ssh_address(self.host, self.ssh)
        place = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        if self.iperf3 is None:
            return place
        user = f"{self.iperf3.user}@" if self.iperf3.user else ""
        return f"{IPERF3_SCHEME}{user}{place}"

    @property
    def identity(self) -> tuple[str, int, SshSettings | None, Iperf3Settings | None]:
        """The value to compare with another peer's: equal for two spellings of one host."""
        return (canonical_host(self.host) if self.ssh is None else self.host), self.port, self.ssh, self.iperf3

    @property
    def is_loopback(self) -> bool:
        """Whether it is the run's own embedded endpoint."""
        return self.host == "loopback" and self.ssh is None

    @property
    def ip_version(self) -> "IpVersion | None":
        """The IP version of connections to it, by its address or `only_ip`; None for a name that may have both."""
        try:
            return parse_ip_address(self.host).version
        except ValueError:
            return self.only_ip

    def over_ip(self, version: "IpVersion | None") -> Self:
        """Return this peer with its addresses of an IP version only; None leaves it all.

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
        """Read `host`, `host:port`, an IPv6 address, `[address]:port`, `ssh://…`, `iperf3://…` or `loopback`.

        Raises PlanError where the text is none of these.
        """
        if is_ssh_address(text):
            host, ssh = parse_ssh_address(text)
            return cls(host, ssh=ssh)
        if is_iperf3_address(text):
            return cls._parse_iperf3(text)
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
        if not (port.isascii() and port.isdigit() and len(port) <= _MOST_PORT_DIGITS):
            raise PlanError("port", repr(port[:20]), "give a number from 1 to 65535")
        return cls(host, int(port))

    @classmethod
    def _parse_iperf3(cls, text: str) -> Self:
        user, at, place = text.strip()[len(IPERF3_SCHEME) :].removesuffix("/").rpartition("@")
        if at and _USER.fullmatch(user) is None:
            raise PlanError("peer", repr(text), "give iperf3://[user@]host[:port]; the password comes separately")
        peer = cls.parse(place) if place and "://" not in place else None
        if peer is None or peer.is_loopback:
            raise PlanError("peer", repr(text), "give iperf3://[user@]host[:port]")
        has_port = (place.startswith("[") and not place.endswith("]")) or place.count(":") == 1
        return cls(peer.host, peer.port if has_port else IPERF3_PORT, iperf3=Iperf3Settings(user or None))


def check_port(port: int) -> int:
    """Return the port; raise PlanError where it is no TCP port."""
    if not 1 <= port <= 65_535:
        raise PlanError("port", port, "give a number from 1 to 65535")
    return port


def check_zone(field: str, host: str) -> None:
    """Check that a link-local address names its interface, as in `fe80::1%eth0`, and that no other host does.

    Args:
        field: the name of the value in the error's text.
        host: a name, or an address of either family.

    Raises:
        PlanError: the interface is missing, has an impossible name, or belongs to no link-local address.
    """
    address, percent, zone = host.partition("%")
    try:
        is_link_local = (ip := ip_address(address)).version == 6 and ip.is_link_local
    except ValueError:
        is_link_local = False
    if not percent:
        if is_link_local:
            allowed = f"a link-local address needs the interface of this machine that leads there: {host}%eth0"
            raise PlanError(field, host, allowed)
    elif not is_link_local:
        raise PlanError(field, repr(host), "only a link-local IPv6 address (fe80::1%eth0) has an interface after %")
    elif not _is_interface_name(zone):
        allowed = "the name of an interface has 1 to 15 bytes without spaces, colons, slashes and brackets"
        raise PlanError(field, repr(host), f"{allowed}; write a port as [fe80::1%eth0]:PORT")


def _is_interface_name(zone: str) -> bool:
    """Return whether an interface may have this name, as the kernel has it; only printable ones are taken."""
    is_usable = zone.isprintable() and " " not in zone and not _NOT_IN_ZONE & set(zone)
    return is_usable and zone not in {".", ".."} and 1 <= len(zone.encode(errors="replace")) <= _MOST_ZONE_BYTES


LOOPBACK: Final = Peer("loopback")


def parse_ip_address(text: str) -> IpAddress:
    """Return the address without its scope; raise ValueError where the text is no IP address."""
    address = ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def canonical_host(host: str) -> str:
    """Return the one spelling of a host name or IP address, as the resolver reads it.

    Names are in lower case, in IDNA's ASCII, and without the dot at their end. Addresses are in their shortest
    form, IPv4 as IPv4 and with four decimal numbers; a zone stays as it is.
    """
    text, percent, zone = host.partition("%")
    if not text.isascii():
        try:
            text = text.encode("idna").decode("ascii")
        except UnicodeError:
            return host  # it has no address: the resolver refuses it
    text = text.lower().removesuffix(".")
    try:
        text = str(parse_ip_address(text))
    except ValueError:
        text = _parse_short_ipv4(text) or text
    return f"{text}{percent}{zone}"


def _parse_short_ipv4(text: str) -> str | None:
    """Return an IPv4 address that is written with fewer, octal or hexadecimal numbers (inet_aton(3))."""
    parts = text.split(".")
    if len(parts) > _IPV4_PARTS or not all(_IPV4_PART.fullmatch(part) for part in parts):
        return None
    *first, last = (int(part, 16 if part[1:2] == "x" else 8 if part[0] == "0" else 10) for part in parts)
    shift = 8 * (_IPV4_PARTS - len(first))
    if any(number > _BYTE for number in first) or last >> shift:
        return None
    return str(IPv4Address(int.from_bytes(bytes(first), "big") << shift | last))


def unmap_ip_address(text: str) -> str:
    """Return an IPv4 address in its own notation, and any other text unchanged (scopes included)."""
    try:
        address = parse_ip_address(text)
    except ValueError:
        return text
    return str(address) if address.version == 4 else text


def ip_version_of(address: str) -> IpVersion:
    """Return the version of the packets to an address, as `unmap_ip_address` writes it."""
    return 6 if ":" in address else 4


def client_network(text: str) -> str:
    """Return the network whose addresses count as one client: an IPv4 address, or an IPv6 network of 64 bits.

    A host may take any address in its IPv6 network, so an address says little there. Link-local addresses are told
    apart by address and interface: every host of a link has the same network. Other text is returned unchanged.
    """
    try:
        address = parse_ip_address(text)
    except ValueError:
        return text
    if address.version == 4:
        return str(address)
    return text.lower() if address.is_link_local else str(ip_network((address, _CLIENT_PREFIX_BITS), strict=False))


def is_loopback_address(text: str) -> bool:
    """Return whether the address is one of the host's own loopback interface."""
    return parse_ip_address(text).is_loopback
