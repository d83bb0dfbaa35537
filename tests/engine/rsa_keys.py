"""An RSA key for users of iperf3, the same for all tests of a process."""

from functools import cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa


@cache
def server_key() -> rsa.RSAPrivateKey:
    """Return the server's key."""
    return rsa.generate_private_key(65_537, 2_048)


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, passphrase: bytes = b"") -> bytes:
    """Return a private key as a file has it."""
    protection = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)


def public_pem() -> bytes:
    """Return the server's public key as a file has it."""
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return server_key().public_key().public_bytes(encoding, form)
