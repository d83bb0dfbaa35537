"""Keys and certificate fingerprints of peers, from a file, the environment or the keys file.

A key never comes from the command line, which other users can read. The keys file is `keys` in the configuration
directory. Each of its lines is `PEER KEY` or `PEER KEY FINGERPRINT`; `*` stands for any peer, `#` begins a comment.
"""

import logging
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...engine.control.handshake import KEY_VARIABLE
from ...engine.model.errors import InvalidKeyError, PlanError
from ...engine.model.peer import Access, Peer, SharedKey
from .storage import config_dir

_log = logging.getLogger(__name__)
_MAX_FILE_BYTES: Final = 64 * 1024
_ANY_PEER: Final = "*"
_FINGERPRINT: Final = re.compile(r"(?:SHA256[:=])?((?:[0-9a-f]{2}:?){31}[0-9a-f]{2})", re.ASCII | re.IGNORECASE)
# systemd gives a service its secrets in a directory that only the service can read. The access list that does this
# looks like a permission of the group.
_SYSTEMD_CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"


def with_access(
    peer: Peer, *, key_file: Path | None = None, may_be_open: bool = False, fingerprint: bytes | None = None
) -> Peer:
    """Return a peer with its key and fingerprint, as far as they are known.

    `key_file` comes first, then the environment, then the keys file. A peer that has its access already, and a far
    end that linkgauge starts itself, are returned unchanged. Raises InvalidKeyError for a file that cannot be used.
    """
    if peer.is_loopback or peer.ssh is not None or peer.access is not None:
        return peer
    key, pinned = (None, None) if key_file is None else (read_key_file(key_file), None)
    if key is None:
        key = key_from_environment(os.environ)
    if key is None or fingerprint is None:
        stored_key, pinned = _read_keys_file(peer)
        key = key or stored_key
    access = Access(key, may_be_open=may_be_open, fingerprint=fingerprint or pinned)
    return Peer(peer.host, peer.port, access)


def key_from_environment(environment: Mapping[str, str]) -> SharedKey | None:
    """Return the key of LINKGAUGE_KEY, or None if it is unset or empty. Raises InvalidKeyError."""
    text = environment.get(KEY_VARIABLE, "").strip()
    try:
        return SharedKey(text) if text else None
    except InvalidKeyError as error:
        raise InvalidKeyError(f"{KEY_VARIABLE}: {error}") from error


def read_key_file(path: Path) -> SharedKey:
    """Return the key that is the only content of a file. Raises InvalidKeyError, also if others can read it."""
    text = _read_secret(path).strip()
    try:
        return SharedKey(text)
    except InvalidKeyError as error:
        raise InvalidKeyError(f"{path}: {error}") from error


def read_fingerprint(text: str) -> bytes:
    """Return the SHA-256 of a certificate from text, with or without colons. Raises PlanError."""
    match = _FINGERPRINT.fullmatch(text.strip())
    if match is None:
        allowed = "give 64 hexadecimal digits, as `linkgauge endpoint` prints them at its start"
        raise PlanError("TLS fingerprint", repr(text[:80]), allowed)
    return bytes.fromhex(match[1].replace(":", ""))


def _read_keys_file(peer: Peer) -> tuple[SharedKey | None, bytes | None]:
    """Return key and fingerprint of a peer from the keys file. A line that names the peer wins over `*`."""
    path = config_dir() / "keys"
    if not path.exists():
        return None, None
    for_any: tuple[SharedKey | None, bytes | None] = (None, None)
    for number, line in enumerate(_read_secret(path).splitlines(), 1):
        words = line.partition("#")[0].split()
        try:
            line_peer, key, pinned = _read_line(words) if words else (None, None, None)
        except (InvalidKeyError, PlanError) as error:
            raise InvalidKeyError(f"{path}, line {number}: {error}") from error
        if line_peer == peer:
            _log.debug("key of %s from %s, line %d", peer, path, number)
            return key, pinned
        if words[:1] == [_ANY_PEER]:
            for_any = key, pinned
    return for_any


def _read_line(words: list[str]) -> tuple[Peer | None, SharedKey, bytes | None]:
    if not 2 <= len(words) <= 3:
        raise InvalidKeyError("a line is PEER KEY, or PEER KEY FINGERPRINT")
    peer = None if words[0] == _ANY_PEER else Peer.parse(words[0])
    return peer, SharedKey(words[1]), read_fingerprint(words[2]) if len(words) > 2 else None


def _read_secret(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077 and not _is_systemd_credential(path):
                raise InvalidKeyError(
                    f"{path} can be read by others than its owner (mode {mode:03o}): chmod 600 {path}"
                )
            return file.read(_MAX_FILE_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidKeyError(f"{path} is not text: it has a key in it, and nothing else") from error
    except OSError as error:
        raise InvalidKeyError(f"the key file {path} cannot be read: {error.strerror}") from error


def _is_systemd_credential(path: Path) -> bool:
    directory = os.environ.get(_SYSTEMD_CREDENTIALS)
    return bool(directory) and path.absolute().parent == Path(directory)
