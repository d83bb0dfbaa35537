"""Keys and certificate fingerprints of peers, from a file, the environment or the keys file.

A key never comes from the command line, which other users can read. The keys file is `keys` in the configuration
directory, which only its owner may read. Each of its lines is `PEER KEY` or `PEER KEY FINGERPRINT`; `*` stands for
any peer, a word with `#` begins a comment. `remember_access` writes such a line. A line is for one host, however it
is spelled, and one port. A file with a wrong line is refused as a whole: a key that is passed over in silence would
let an impostor of that peer in.
"""

import logging
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...engine.host.saved_files import (
    PRIVATE_FILE_MODE,
    create_private_directory,
    read_secret,
    write_atomically,
)
from ...engine.model.errors import InvalidKeyError, PlanError, UsageError, explain_os_error, make_printable
from ...engine.model.ip_address import canonical_host, is_loopback_address
from ...engine.model.peer import IPERF3_PASSWORD_VARIABLE, Iperf3Login, Iperf3Settings, Peer
from ...engine.model.shared_key import KEY_VARIABLE, NO_ACCESS, Access, SharedKey
from .named_keys import read_key_file
from .storage import config_dir, expand_home

if TYPE_CHECKING:
    from ...engine.iperf3.protocol.users import UserList

IPERF3_PUBLIC_KEY_VARIABLE: Final = "IPERF3_PUBLIC_KEY"
_log = logging.getLogger(__name__)
_KIB: Final = 1_024
_MAX_KEY_FILE_BYTES: Final = 64 * _KIB
_MAX_KEYS_FILE_BYTES: Final = 1_024 * _KIB  # ten thousand peers
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_ANY_PEER: Final = "*"
_FINGERPRINT: Final = re.compile(r"(?:SHA256[:=])?((?:[0-9a-f]{2}:?){31}[0-9a-f]{2})", re.ASCII | re.IGNORECASE)
# systemd gives a service its secrets in a directory that only the service can read. The access list that does this
# looks like a permission of the group.
_PROGRAM: Final = "linkgauge"
_PASTED: Final = (
    "give HOST, HOST:PORT, ssh://HOST, iperf3://HOST, librespeed://HOST, ndt7://HOST or loopback, or paste the "
    "command that `linkgauge endpoint` has printed there"
)
_PASTED_OPTIONS: Final = ("--key", "--key-file", "--tls-fingerprint", "--preset")


def with_access(
    peer: Peer,
    *,
    key_file: Path | None = None,
    usual_key_file: Path | None = None,
    may_be_open: bool = False,
    fingerprint: bytes | None = None,
) -> Peer:
    """Return a peer with its key and fingerprint, if they are known.

    `key_file` comes first, then the environment, then the line of the peer in the keys file, then `usual_key_file`,
    then the line for any peer. A peer that has its access already, and a far end that linkgauge starts itself, are
    returned unchanged. An endpoint on this host's loopback interface may be
    open if the key is for any peer. Raises InvalidKeyError for a file that cannot be used.
    """
    if peer.iperf3 is not None:
        return peer if peer.iperf3.login is not None else with_iperf3_login(peer)
    if peer.speed is not None:
        return peer if fingerprint is None else replace(peer, access=replace(NO_ACCESS, fingerprint=fingerprint))
    if peer.is_loopback or peer.ssh is not None or peer.access is not None:
        return peer
    key, line = None if key_file is None else read_key_file(key_file), _NO_LINE
    is_for_peer = key is not None
    if key is None:
        key = key_from_environment(os.environ)
    if key is None or fingerprint is None:
        line = _find_line(peer)
        if key is None and line.key is not None and (line.peer is not None or usual_key_file is None):
            key, is_for_peer = SharedKey(line.key), line.peer is not None
    if key is None and usual_key_file is not None:
        key = read_key_file(usual_key_file)
    may_be_open = may_be_open or (not is_for_peer and _is_on_loopback(peer))
    return Peer(
        peer.host, peer.port, Access(key, may_be_open=may_be_open, fingerprint=fingerprint or line.fingerprint)
    )


def with_iperf3_login(peer: Peer, public_key_file: Path | None = None, *, is_pkcs1: bool = False) -> Peer:
    """Return an iperf3 server with the password and public key for its user, if it has one.

    Servers before 3.17 need the padding `is_pkcs1`.
    Raises UsageError if either or the package cryptography is missing, InvalidKeyError for a useless key.
    """
    user = None if peer.iperf3 is None else peer.iperf3.user
    if user is None:
        if public_key_file is not None:
            raise UsageError(f"--iperf3-public-key needs a user: give iperf3://USER@{peer.host}")
        return peer
    password, path = os.environ.get(IPERF3_PASSWORD_VARIABLE, ""), os.environ.get(IPERF3_PUBLIC_KEY_VARIABLE, "")
    if not password:
        raise UsageError(f"{peer} needs a password; set {IPERF3_PASSWORD_VARIABLE}")
    if public_key_file is None and not path:
        raise UsageError(f"{peer} needs the server's public key; give --iperf3-public-key FILE")
    public_key = _read_public_key(public_key_file or expand_home(IPERF3_PUBLIC_KEY_VARIABLE, path))
    from ...engine.iperf3.protocol.users import make_token

    make_token(user, password, public_key, datetime.now(UTC).timestamp())  # to refuse now what cannot be used
    return replace(peer, iperf3=Iperf3Settings(user, Iperf3Login(password, public_key, is_pkcs1)))


def _read_public_key(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_KEYS_FILE_BYTES)
    except OSError as error:
        raise InvalidKeyError(f"the public key {path} cannot be read: {explain_os_error(error)}") from error


def _is_on_loopback(peer: Peer) -> bool:
    """Return whether a peer is an endpoint of this host's own, which needs no key unless it has one of its own."""
    host = canonical_host(peer.host)
    try:
        return host == "localhost" or is_loopback_address(host)
    except ValueError:
        return False


def key_from_environment(environment: Mapping[str, str]) -> SharedKey | None:
    """Return the key of LINKGAUGE_KEY, or None if it is unset or empty. Raises InvalidKeyError."""
    text = environment.get(KEY_VARIABLE, "").strip()
    try:
        return SharedKey(text) if text else None
    except InvalidKeyError as error:
        raise InvalidKeyError(f"{KEY_VARIABLE}: {error}") from error


def read_iperf3_users(users_file: Path, key_file: Path, *, accepts_pkcs1: bool = False) -> "UserList":
    """Return the users of iperf3 clients, with the private key for their passwords.

    Args:
        users_file: Lines of NAME,HASH.
        key_file: The RSA key, PEM.
        accepts_pkcs1: Accept the padding of clients before 3.17 as well.

    Raises:
        InvalidKeyError: A file cannot be used, or others can read it.
        UsageError: The package cryptography is not installed.
    """
    from ...engine.iperf3.protocol.users import UserList, parse_users

    text = read_secret(users_file, _MAX_KEYS_FILE_BYTES, "put lines of NAME,HASH in it and nothing else")
    key = read_secret(key_file, _MAX_KEY_FILE_BYTES, "put the private key in it and nothing else (PEM)")
    try:
        users = parse_users(text)
    except InvalidKeyError as error:
        raise InvalidKeyError(f"{users_file}: {error}") from error
    try:
        return UserList(users, key.encode(), accepts_pkcs1=accepts_pkcs1)
    except InvalidKeyError as error:
        raise InvalidKeyError(f"{key_file}: {error}") from error


def read_fingerprint(text: str) -> bytes:
    """Return the SHA-256 of a certificate from text, with or without colons. Raises PlanError."""
    match = _FINGERPRINT.fullmatch(text.strip())
    if match is None:
        allowed = "give 64 hexadecimal digits, as `linkgauge endpoint` prints them at its start"
        raise PlanError("TLS fingerprint", repr(text[:80]), allowed)
    return bytes.fromhex(match[1].replace(":", ""))


def parse_pasted_peer(text: str) -> Peer:
    """Return the peer of an address, or of a whole command line that names it, with its key and fingerprint.

    Raises PlanError for text that is neither, and InvalidKeyError for a key that cannot be used.
    """
    words = _split_command(text)
    variables = [word.partition("=") for word in words if _is_key_assignment(word)]
    words = [word for word in words if word not in {"$", "sudo"} and not _is_key_assignment(word)]
    if not variables and len(words) == 1:
        return Peer.parse(words[0])
    options, names = _read_options(_after_program(words, text), text)
    if not names:
        raise PlanError("peer", repr(text[:80]), _PASTED)
    peer = Peer.parse(names[-1])
    key: SharedKey | None = None
    if "--key-file" in options:
        key = read_key_file(expand_home("--key-file", options["--key-file"]))
    elif key_text := options.get("--key") or (variables[-1][2] if variables else ""):
        key = SharedKey(key_text)
    pin = read_fingerprint(options["--tls-fingerprint"]) if "--tls-fingerprint" in options else None
    return peer if key is None and pin is None else replace(peer, access=Access(key, fingerprint=pin))


def parse_pasted_key(text: str) -> SharedKey:
    """Return the key that a text is, or that a pasted command line contains. Raises InvalidKeyError."""
    text = text.strip()
    if not any(character.isspace() for character in text):
        return SharedKey(text.removeprefix(f"{KEY_VARIABLE}="))
    try:
        access = parse_pasted_peer(text).access
    except PlanError as error:
        raise InvalidKeyError(f"this is neither a key nor a command with one: {error}") from error
    if access is None or access.key is None:
        raise InvalidKeyError("this command has no key in it: copy the one that `linkgauge endpoint` printed")
    return access.key


def remember_access(peer: Peer) -> Path:
    """Write the key and fingerprint of a peer to the keys file, in place of its earlier line; return the file.

    Raises InvalidKeyError for a peer without a key, and if the file cannot be used.
    """
    access = peer.access
    if access is None or access.key is None:
        raise InvalidKeyError(f"there is no key of {peer} to save")
    path = config_dir() / "keys"
    lines = [line.text for line in _read_lines(path) if line.peer is None or line.peer.identity != peer.identity]
    from ...engine.control.tls import format_fingerprint  # with asyncio, which a command line does not load

    pin = "" if access.fingerprint is None else f" {format_fingerprint(access.fingerprint)}"
    line = f"{peer} {access.key.reveal()}{pin}"
    if _COMMENT.search(line):
        raise InvalidKeyError(f"the key of {peer} cannot be saved: # at its beginning would make it a comment")
    try:
        create_private_directory(path.parent)
        write_atomically(path, "\n".join([*lines, line]) + "\n", mode=PRIVATE_FILE_MODE)
    except OSError as error:
        raise InvalidKeyError(f"the key cannot be saved in {path}: {error.strerror or 'write error'}") from error
    _log.debug("saved the key of %s in %s", peer, path)
    return path


def _is_key_assignment(word: str) -> bool:
    return word.startswith(f"{KEY_VARIABLE}=")


def _split_command(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise PlanError("peer", repr(text[:80]), _PASTED) from error


def _after_program(words: Sequence[str], text: str) -> list[str]:
    """Return the words after the program and its command."""
    for number, word in enumerate(words):
        if Path(word).name == _PROGRAM:
            rest = list(words[number + 1 :])
            return rest[1:] if rest[:1] in (["app"], ["run"], ["check"]) else rest
    raise PlanError("peer", repr(text[:80]), _PASTED)


def _read_options(words: Sequence[str], text: str) -> tuple[dict[str, str], list[str]]:
    """Return the options of a connection by their names, and the other words."""
    options: dict[str, str] = {}
    names: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if not word.startswith("-"):
            names.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in _PASTED_OPTIONS:
            allowed = f"paste a command with {', '.join(_PASTED_OPTIONS[:-1])} at most"
            raise PlanError(make_printable(name[:40]), repr(text[:80]), allowed)
        options[name] = value if equals else next(remaining, "")
    return options, names


@dataclass(frozen=True, slots=True)
class _KeyLine:
    """A line of the keys file. One without a key is empty or a comment; one with a key and no peer is for any."""

    text: str
    peer: Peer | None = None
    key: str | None = None
    fingerprint: bytes | None = None


_NO_LINE: Final = _KeyLine("")


def _find_line(peer: Peer) -> _KeyLine:
    """Return a peer's line in the keys file, else the line for any peer, else one without a key."""
    path = config_dir() / "keys"
    lines = [line for line in _read_lines(path) if line.key is not None]
    of_peer = [line for line in lines if line.peer is not None and line.peer.identity == peer.identity]
    of_any = [line for line in lines if line.peer is None]
    for line in (*of_peer[:1], *of_any[-1:]):
        _log.debug("key of %s from a line of %s", peer, path)
        return line
    return _NO_LINE


def _read_lines(path: Path) -> list[_KeyLine]:
    """Return all lines of the keys file, none without a file. Raises InvalidKeyError for a wrong one."""
    if not os.path.lexists(path):
        return []
    lines: list[_KeyLine] = []
    text = read_secret(path, _MAX_KEYS_FILE_BYTES, "remove the lines of peers that you do not test any more")
    for number, line in enumerate(text.splitlines(), 1):
        try:
            lines.append(_parse_line(line))
        except (InvalidKeyError, PlanError) as error:
            raise InvalidKeyError(f"{path}, line {number}: {error}; correct or remove the line") from error
    return lines


def _parse_line(text: str) -> _KeyLine:
    words = _COMMENT.sub("", text).split()
    if not words:
        return _KeyLine(text)
    if not 2 <= len(words) <= 3:
        raise InvalidKeyError("a line is PEER KEY, or PEER KEY FINGERPRINT")
    peer = None if words[0] == _ANY_PEER else Peer.parse(words[0])
    key = SharedKey(words[1]).reveal()
    return _KeyLine(text, peer, key, read_fingerprint(words[2]) if len(words) > 2 else None)
