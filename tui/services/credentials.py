"""Where a key comes from: a file, the environment, the keys file; never the command line, which others can read.

The keys file is `keys` in the configuration directory. Each line is a peer and its key, and `*` is any peer; a
line may end with the fingerprint of the peer's certificate. `#` begins a comment.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...engine.control.handshake import KEY_VARIABLE
from ...engine.model.access import Access, InvalidKeyError, SharedKey
from ...engine.model.errors import PlanError
from ...engine.model.peer import Peer
from .config import config_dir

_MOST_BYTES: Final = 64 * 1024
_ANY: Final = "*"
_FINGERPRINT: Final = re.compile(r"(?:SHA256[:=])?((?:[0-9a-f]{2}:?){31}[0-9a-f]{2})", re.ASCII | re.IGNORECASE)
# systemd lends a service its secrets in a folder that is the service's alone, by an access list that looks
# like the group's permission.
_LENT: Final = "CREDENTIALS_DIRECTORY"


def with_access(
    peer: Peer, *, key_file: Path | None = None, may_be_open: bool = False, fingerprint: bytes | None = None
) -> Peer:
    """Return a peer with what there is to bring to it; one that has it, or that this end starts itself, as it is.

    A file that was named comes first, then the environment, then the keys file. Raises KeyProblem for a file
    that cannot be used.
    """
    if peer.is_loopback or peer.ssh is not None or peer.access is not None:
        return peer
    key, pinned = (None, None) if key_file is None else (read_key_file(key_file), None)
    if key is None:
        key = key_from_environment(os.environ)
    if key is None or fingerprint is None:
        kept, pinned = _kept_for(peer)
        key = key or kept
    access = Access(key, may_be_open=may_be_open, fingerprint=fingerprint or pinned)
    return Peer(peer.host, peer.port, access)


def key_from_environment(environment: Mapping[str, str]) -> SharedKey | None:
    """Return the key of the environment; None where there is none, or an empty one."""
    text = environment.get(KEY_VARIABLE, "").strip()
    try:
        return SharedKey(text) if text else None
    except InvalidKeyError as error:
        raise InvalidKeyError(f"{KEY_VARIABLE}: {error}") from error


def read_key_file(path: Path) -> SharedKey:
    """Return the key that is all a file has in it; raise KeyProblem where others can read it."""
    text = _read_secret(path).strip()
    try:
        return SharedKey(text)
    except InvalidKeyError as error:
        raise InvalidKeyError(f"{path}: {error}") from error


def read_fingerprint(text: str) -> bytes:
    """Read the SHA-256 of a certificate, with or without colons; raise PlanError where it is none."""
    match = _FINGERPRINT.fullmatch(text.strip())
    if match is None:
        allowed = "give 64 hexadecimal digits, as `linkgauge endpoint` prints them at its start"
        raise PlanError("TLS fingerprint", repr(text[:80]), allowed)
    return bytes.fromhex(match[1].replace(":", ""))


def _kept_for(peer: Peer) -> tuple[SharedKey | None, bytes | None]:
    """Return what the keys file has for a peer; its own line comes before any peer's."""
    path = config_dir() / "keys"
    if not path.exists():
        return None, None
    for_any: tuple[SharedKey | None, bytes | None] = (None, None)
    for number, line in enumerate(_read_secret(path).splitlines(), 1):
        words = line.partition("#")[0].split()
        try:
            whose, key, pinned = _read_line(words) if words else (None, None, None)
        except (InvalidKeyError, PlanError) as error:
            raise InvalidKeyError(f"{path}, line {number}: {error}") from error
        if whose == peer:
            return key, pinned
        if words[:1] == [_ANY]:
            for_any = key, pinned
    return for_any


def _read_line(words: list[str]) -> tuple[Peer | None, SharedKey, bytes | None]:
    if not 2 <= len(words) <= 3:
        raise InvalidKeyError("a line is PEER KEY, or PEER KEY FINGERPRINT")
    whose = None if words[0] == _ANY else Peer.parse(words[0])
    return whose, SharedKey(words[1]), read_fingerprint(words[2]) if len(words) > 2 else None


def _read_secret(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077 and not _is_lent(path):
                raise InvalidKeyError(
                    f"{path} can be read by others than its owner (mode {mode:03o}): chmod 600 {path}"
                )
            return file.read(_MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidKeyError(f"{path} is not text: it has a key in it, and nothing else") from error
    except OSError as error:
        raise InvalidKeyError(f"the key file {path} cannot be read: {error.strerror}") from error


def _is_lent(path: Path) -> bool:
    lent = os.environ.get(_LENT)
    return bool(lent) and path.absolute().parent == Path(lent)
