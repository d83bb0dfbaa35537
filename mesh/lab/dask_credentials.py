"""Credentials for a Dask cluster on loopback, which every user of a machine can reach, and which runs any code.

Both ends prove with one certificate, made for the lab alone, that they belong to it. Its files are in a folder that
only the person's own user may read. Namespaces need none: nobody else can enter them.
"""

from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ...engine.model.errors import LabUnavailable, explain_extra

_DAYS: Final = 30
_ROLES: Final = ("SCHEDULER", "WORKER", "CLIENT")
_TLS: Final = "DASK_DISTRIBUTED__COMM__TLS__"


def create_credentials(folder: Path) -> dict[str, str]:
    """Write a key and its certificate to a folder; return the environment of Dask's processes that use them.

    Raises LabUnavailable if the package cryptography is not installed.
    """
    try:
        private_key, text = _create_certificate()
    except ImportError as error:
        raise LabUnavailable(explain_extra("hosts on loopback need the package cryptography", "mesh")) from error
    certificate_file, key_file = folder / "lab.crt", folder / "lab.key"
    certificate_file.write_bytes(text)
    key_file.touch(mode=0o600)
    key_file.write_bytes(private_key)
    files = {f"{_TLS}CA_FILE": str(certificate_file)}
    for role in _ROLES:
        files |= {f"{_TLS}{role}__CERT": str(certificate_file), f"{_TLS}{role}__KEY": str(key_file)}
    return {**files, "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"}


def _create_certificate() -> tuple[bytes, bytes]:
    """Return a private key and its own certificate, in PEM."""
    x509: Any = import_module("cryptography.x509")
    hashes: Any = import_module("cryptography.hazmat.primitives.hashes")
    serialization: Any = import_module("cryptography.hazmat.primitives.serialization")
    curves: Any = import_module("cryptography.hazmat.primitives.asymmetric.ec")
    key = curves.generate_private_key(curves.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "linkgauge lab")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # a clock may be set back
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain), certificate.public_bytes(pem)
