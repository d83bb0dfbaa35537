"""Dask in a lab: its command lines, its certificate, and the address of its scheduler.

The programs are those of a mesh over ssh. Nothing of Dask is imported here.

Every user of a machine can reach loopback, and a Dask cluster runs any code. So both ends prove on loopback that
they belong to the lab, with one certificate that is made for it alone. Only the user who started the lab may read
its files. Namespaces need no certificate: nobody else can enter them.
"""

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from ...engine.model.errors import LabUnavailable, explain_extra
from ..cluster import SCHEDULER_CLASS, WORKER_CLASS, WORKER_OPTIONS

SETTINGS: Final[Mapping[str, str]] = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "OPENBLAS_NUM_THREADS": "1",
}
"""The environment of Dask's processes: without it, each would take 100 samples a second for a profile, and NumPy's
library would start a thread for each core."""
Protocol = Literal["tcp", "tls"]
_DASK: Final = "distributed"
_DAYS: Final = 30
_ROLES: Final = ("SCHEDULER", "WORKER", "CLIENT")
_TLS: Final = "DASK_DISTRIBUTED__COMM__TLS__"


def check_dask() -> None:
    """Raise LabUnavailable if Dask is not installed."""
    if find_spec(_DASK) is None:
        raise LabUnavailable(explain_extra("a lab of several hosts needs Dask", "mesh"))


def scheduler_command(protocol: Protocol, address: str, file: Path) -> list[str]:
    """Return a scheduler's command line. It listens on a free port, and writes its address to the file."""
    return _program(SCHEDULER_CLASS, protocol=protocol, host=address, port=0, scheduler_file=str(file))


def worker_command(protocol: Protocol, scheduler: str, name: str, address: str, ready_file: Path) -> list[str]:
    """Return the command line of a host's worker, which has one network interface to lend.

    It creates `ready_file` once the scheduler knows it, and keeps its own files beside it.
    """
    files = {"local_directory": str(ready_file.parent), "ready_file": str(ready_file)}
    return [
        *_program(WORKER_CLASS, name=name, protocol=protocol, host=address, **files, **WORKER_OPTIONS),
        scheduler,
    ]


def _program(kind: str, **options: object) -> list[str]:
    spec = {"cls": kind, "opts": options}
    return [sys.executable, "-P", "-m", f"{_DASK}.cli.dask_spec", "--spec", json.dumps(spec)]


def read_address(file: Path) -> str | None:
    """Return the address in a scheduler's file; None before the scheduler has written it."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json.loads(file.read_bytes())["address"])
    return None


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
