"""Users of iperf3: a client's token of a name and a password, and the list with which a server checks it.

Pure but for the package `cryptography`, which is imported when a token is made or checked. A token is encrypted
with the server's RSA key and valid for ten seconds. It is weaker than a linkgauge key: the holder of the
private key can read the password, and a token is not bound to its connection.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...model.errors import InvalidKeyError, UsageError, explain_extra, make_printable
from ...model.limits import TokenBucket
from .refusals import ErrorNumber, Iperf3Refusal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.padding import AsymmetricPadding
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

MAX_SKEW_S: Final = 10
MIN_KEY_BITS: Final = 2_048
MAX_KEY_BITS: Final = 16_384
CHECKS_PER_SECOND: Final = 20  # a check of a key of 4,096 bits takes some milliseconds of the control process
_WORD: Final = re.compile(r"\S{1,128}")
_USER_LINE: Final = re.compile(r"([^\s,]{1,128}),([0-9A-Fa-f]{64})", re.ASCII)
_PLAINTEXT: Final = re.compile(rb"user:\s*(\S{1,128})\s+pwd:\s*(\S{1,128})\s+ts:\s*([0-9]{1,12})\s*")
_NO_CREDENTIALS: Final = (b"", b"", 0)
_SECOND_NS: Final = 1_000_000_000


def hash_password(user: str, password: str) -> str:
    """Return the hash of a password as a users file has it after the name and a comma."""
    return _hash(user.encode(), password.encode())


def _hash(user: bytes, password: bytes) -> str:
    return hashlib.sha256(b"{" + user + b"}" + password).hexdigest()


def parse_users(text: str) -> dict[str, str]:
    """Return the hashes of a users file by their names; `#` begins a comment.

    Raises:
        InvalidKeyError: A line is not `NAME,HASH`, a name comes twice, or there is no name.
    """
    users: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _USER_LINE.fullmatch(line.strip())
        if match is None:
            raise InvalidKeyError(
                f"line {number}: write NAME,HASH with the SHA-256 of {{NAME}}PASSWORD in 64 digits"
            )
        if match[1] in users:
            raise InvalidKeyError(
                f"line {number}: {make_printable(match[1])} has a line already; remove one of them"
            )
        users[match[1]] = match[2].lower()
    if not users:
        raise InvalidKeyError("there is no user; write NAME,HASH with the SHA-256 of {NAME}PASSWORD")
    return users


class UserList:
    """The users whose tests a server runs, and the private key for their tokens.

    A token is accepted once. OAEP is the only padding, unless `accepts_pkcs1`: an answer to a token with the old
    padding can help an attacker to decrypt another token.
    """

    def __init__(self, users: Mapping[str, str], private_key: bytes, *, accepts_pkcs1: bool = False) -> None:
        """Make a list.

        Args:
            users: The hashes of passwords by the names.
            private_key: The RSA key, PEM, without passphrase.
            accepts_pkcs1: Accept PKCS #1 v1.5 besides OAEP, for clients before 3.17.

        Raises:
            InvalidKeyError: The key cannot be used.
            UsageError: The package cryptography is not installed.
        """
        self._users = {name.encode(): digest for name, digest in users.items()}
        self._key = _load_private_key(private_key)
        self._paddings = [_oaep(), *([_pkcs1()] if accepts_pkcs1 else [])]
        self._used: dict[bytes, int] = {}  # until when
        self.not_before_s = 0  # tokens that an earlier process has accepted are not in `_used`
        self._bucket: TokenBucket | None = None

    def __repr__(self) -> str:
        return f"UserList({len(self._users)} users)"

    def take_over(self, other: "UserList") -> None:
        """Take the users and the key of another list. Tokens that were used stay so."""
        self._users, self._key, self._paddings = other._users, other._key, other._paddings  # noqa: SLF001

    def check(self, token: str | None, now_s: float, clock_ns: int) -> str:
        """Return the name of the user whose token it is.

        Args:
            token: The `authtoken` of the parameters; None if there is none.
            now_s: The time of day, since 1970.
            clock_ns: The monotonic clock.

        Raises:
            Iperf3Refusal: The token does not belong to a user, is too old, or was used before. The text is for the
                log alone: a client gets the same number in each case.
        """
        if token is None:
            raise _refuse("it gave no user name")
        if self._bucket is None:
            self._bucket = TokenBucket(CHECKS_PER_SECOND, clock_ns)
        if not self._bucket.take(clock_ns):
            raise _refuse("too many logins in a second")
        encrypted = _decode_base64(token)
        plaintext = self._decrypt(encrypted)
        match = None if plaintext is None else _PLAINTEXT.fullmatch(plaintext.rstrip(b"\0"))
        name, password, made_s = _NO_CREDENTIALS if match is None else (match[1], match[2], int(match[3]))
        # The same work for every token: its time reveals neither the name nor the padding.
        expected = self._users.get(name, "0" * 64)
        is_user = hmac.compare_digest(expected, _hash(name, password)) and name in self._users
        if match is None:
            raise _refuse(f"its token cannot be decrypted with this key{self._old_padding_hint()}")
        if not is_user:
            raise _refuse(f"unknown user or wrong password: {make_printable(name.decode('utf-8', 'replace'))}")
        if made_s < self.not_before_s:
            raise _refuse("its token is from before this endpoint started, and may have been used: try again")
        if abs(now_s - made_s) > MAX_SKEW_S:
            raise _refuse(f"its token is {now_s - made_s:.0f} s old: compare the clocks of both hosts")
        self._use(encrypted, made_s, now_s)
        return make_printable(name.decode("utf-8", "replace"))

    def _old_padding_hint(self) -> str:
        if len(self._paddings) > 1:
            return ""
        return "; a client before iperf3 3.17 needs --iperf3-pkcs1 here, for its PKCS #1 padding"

    def _use(self, encrypted: bytes, made_s: int, now_s: float) -> None:
        """Accept a token once; its digest stays until the token is too old."""
        self._used = {digest: until_s for digest, until_s in self._used.items() if until_s >= now_s}
        digest = hashlib.sha256(encrypted).digest()
        if digest in self._used:
            raise _refuse("its token was used before")
        self._used[digest] = made_s + MAX_SKEW_S

    def _decrypt(self, encrypted: bytes) -> bytes | None:
        if len(encrypted) != (self._key.key_size + 7) // 8:
            return None
        for padding in self._paddings:
            try:
                plaintext = self._key.decrypt(encrypted, padding)
            except ValueError:
                continue
            if _PLAINTEXT.fullmatch(plaintext.rstrip(b"\0")):  # OpenSSL gives random bytes for a wrong old padding
                return plaintext
        return None


def make_token(user: str, password: str, public_key: bytes, now_s: float, *, is_pkcs1: bool = False) -> str:
    """Return the token by which a client logs in.

    Args:
        user: The name, without white space.
        password: The password, without white space.
        public_key: The server's RSA key, PEM.
        now_s: The time of day, since 1970.
        is_pkcs1: Encrypt with the padding of servers before 3.17.

    Raises:
        InvalidKeyError: The key cannot be used, or the name and password do not fit.
        UsageError: The package cryptography is not installed.
    """
    for name, word in (("user name", user), ("password", password)):
        if not _WORD.fullmatch(word):
            raise InvalidKeyError(f"iperf3 takes a {name} of 1 to 128 characters without white space")
    serialization = _import("cryptography.hazmat.primitives.serialization")
    try:
        key = serialization.load_pem_public_key(public_key)
        encrypt: Callable[..., bytes] = key.encrypt
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidKeyError("this is not a public RSA key of an iperf3 server (PEM)") from error
    plaintext = f"user: {user}\npwd:  {password}\nts:   {int(now_s)}".encode()
    try:
        encrypted = encrypt(plaintext, _pkcs1() if is_pkcs1 else _oaep())
    except ValueError as error:
        raise InvalidKeyError("the server's key is too short for this user name and password") from error
    return base64.b64encode(encrypted).decode("ascii")


def _load_private_key(pem: bytes) -> "RSAPrivateKey":
    serialization = _import("cryptography.hazmat.primitives.serialization")
    rsa = _import("cryptography.hazmat.primitives.asymmetric.rsa")
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise InvalidKeyError("the private key has a passphrase; give one without") from error
    except ValueError as error:
        raise InvalidKeyError("this is not a private key (PEM); make one with: openssl genrsa 2048") from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise InvalidKeyError("iperf3 takes an RSA key only; make one with: openssl genrsa 2048")
    private_key: RSAPrivateKey = key
    if not MIN_KEY_BITS <= private_key.key_size <= MAX_KEY_BITS:
        raise InvalidKeyError(
            f"the private key has {private_key.key_size} bits; give one of {MIN_KEY_BITS} or more"
        )
    return private_key


def _oaep() -> "AsymmetricPadding":
    padding = _import("cryptography.hazmat.primitives.asymmetric.padding")
    sha1 = _import("cryptography.hazmat.primitives.hashes").SHA1
    return padding.OAEP(mgf=padding.MGF1(algorithm=sha1()), algorithm=sha1(), label=None)


def _pkcs1() -> "AsymmetricPadding":
    return _import("cryptography.hazmat.primitives.asymmetric.padding").PKCS1v15()


def _import(name: str) -> Any:
    """Return a module of the package cryptography."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(explain_extra("users of iperf3 need the package cryptography", "iperf3")) from error


def _decode_base64(token: str) -> bytes:
    try:
        return base64.b64decode(token.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _refuse(text: str) -> Iperf3Refusal:
    return Iperf3Refusal(ErrorNumber.AUTHORIZATION, text)
