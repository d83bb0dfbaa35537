"""TLS for the control connection, for an endpoint with a certificate that the near end knows by its fingerprint.

There is no certificate authority: a fingerprint that the user carried from host to host proves more than a name. It
is part of the proofs of the key as well (`channel_binding`, model/shared_key.py). Data connections do not use TLS.
"""

import asyncio
import hashlib
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from ..host.saved_files import explain_exposure
from ..model.directions import End
from ..model.errors import PeerNotLinkgauge, PeerUntrusted, TlsError, explain_os_error
from ..model.peer import Peer
from ..model.shared_key import constant_time_equal
from .connection import ControlConnection

_TRIM_AFTER_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate of an endpoint; `fingerprint` is its SHA-256, by which the near end knows it."""

    context: ssl.SSLContext
    fingerprint: bytes

    @classmethod
    def load(cls, certificate: Path, key: Path) -> Self:
        """Read PEM files; raise TlsError if they are invalid or not a pair, or if others can read the key."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        try:
            _check_private(key)
            context.load_cert_chain(certificate, key, password=_no_password)
            first = certificate.read_text(encoding="ascii").partition(ssl.PEM_FOOTER)[0]
            pem = ssl.PEM_HEADER + first.partition(ssl.PEM_HEADER)[2] + ssl.PEM_FOOTER
            return cls(context, hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).digest())
        except (OSError, ValueError) as error:  # ssl's errors are OSErrors
            why = _explain(error)
            raise TlsError(f"--tls-cert {certificate} and --tls-key {key} cannot be used: {why}") from error


def _check_private(key: Path) -> None:
    exposure = explain_exposure(key, key.stat().st_mode)
    if exposure is not None:
        raise ValueError(exposure)


def _explain(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        is_pair = error.reason == "KEY_VALUES_MISMATCH"
        return "the key belongs to another certificate" if is_pair else "give files in PEM format"
    return explain_os_error(error) if isinstance(error, OSError) else str(error)


def _no_password() -> str:
    raise ValueError("the key has a password; give a key without one")


def format_fingerprint(fingerprint: bytes) -> str:
    """Return a fingerprint as it is printed and typed."""
    return fingerprint.hex()


async def start_tls(sock: socket.socket, peer: Peer, fingerprint: bytes) -> ControlConnection:
    """Return a control connection by TLS over a connected socket; raise PeerUntrusted for another certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the fingerprint is compared instead, below
    try:
        _transport, link = await asyncio.get_running_loop().create_connection(
            lambda: ControlConnection(End.NEAR), sock=sock, ssl=context, server_hostname=""
        )
    except (ssl.SSLError, ConnectionError) as error:
        what = (
            "does not use TLS"
            if isinstance(error, ssl.SSLError)
            else "closed the connection instead of answering in TLS"
        )
        raise PeerNotLinkgauge(
            f"{peer} {what}; start its endpoint with --tls-cert and --tls-key, or leave out "
            "--tls-fingerprint; an endpoint that is busy, or does not serve this host's address, answers so as well"
        ) from error
    certificate = link.certificate
    actual = b"" if certificate is None else hashlib.sha256(certificate).digest()
    if not constant_time_equal(fingerprint, actual):
        await link.aclose()
        raise PeerUntrusted(
            f"{peer} cannot be trusted: its certificate's fingerprint is {format_fingerprint(actual)}, "
            "not that of --tls-fingerprint"
        )
    link.channel_binding = actual
    return link


class HandshakeMemory:
    """Gives the memory of connections over TLS back to the system, some seconds after the first of them has gone.

    glibc keeps what OpenSSL frees between other blocks: eight floods of some 1,500 silent handshakes took an
    endpoint from 21 to 117 MB of RssAnon. With malloc_trim(3), 2 to 7 ms each time, it had 27 MB after each.
    """

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def note_end(self) -> None:
        """Give memory back soon, since a handshake has failed, or a connection has ended."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_TRIM_AFTER_S, self._trim)

    def close(self) -> None:
        """Give nothing back any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _trim(self) -> None:
        import ctypes  # 10 ms that a start need not take

        self._timer = None
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            trim(0)
