"""Dask in a lab: its command lines, its certificate, and whether all workers are there.

The programs are Dask's own, started as they would be on real hosts. Nothing of Dask is imported here.

Every user of a machine can reach loopback, and a Dask cluster runs any code. So both ends prove on loopback that
they belong to the lab, with one certificate that is made for it alone. Only the user who started the lab may read
its files. Namespaces need no certificate: nobody else can enter them.
"""

import http.client
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal, Self

from ...engine.model.errors import LabUnavailable, explain_extra

SETTINGS: Final[Mapping[str, str]] = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
"""The environment of Dask's processes: without it, each would take 100 samples a second for a profile."""
Protocol = Literal["tcp", "tls"]
_DASK: Final = "distributed"
_ASK_DEADLINE_S: Final = 5.0
_MOST_BYTES: Final = 65_536
_DAYS: Final = 30
_ROLES: Final = ("SCHEDULER", "WORKER", "CLIENT")
_TLS: Final = "DASK_DISTRIBUTED__COMM__TLS__"


def check_dask() -> None:
    """Raise LabUnavailable if Dask is not installed."""
    if find_spec(_DASK) is None:
        raise LabUnavailable(explain_extra("a lab of several hosts needs Dask", "mesh"))


def scheduler_command(protocol: Protocol, address: str, file: Path) -> list[str]:
    """Return a scheduler's command line. It listens on a free port, and writes its address to the file."""
    return [*_program("dask_scheduler", protocol, address), "--port", "0", "--scheduler-file", str(file)]


def worker_command(protocol: Protocol, scheduler: str, name: str, address: str, folder: Path) -> list[str]:
    """Return the command line of a host's worker, which has one network interface to lend."""
    return [
        *_program("dask_worker", protocol, address),
        scheduler,
        "--no-nanny",
        *("--name", name),
        *("--nthreads", "2"),
        *("--resources", "nic=1"),
        *("--memory-limit", "0"),
        *("--local-directory", str(folder)),
    ]


def _program(name: str, protocol: Protocol, address: str) -> list[str]:
    # Dask serves counts by HTTP even without a dashboard: on a free port, since 8787 may be taken.
    http_address = ("--no-dashboard", "--dashboard-address", f"{address}:0")
    listening = ("--protocol", protocol, "--host", address)
    return [sys.executable, "-P", "-m", f"{_DASK}.cli.{name}", *listening, *http_address]


@dataclass(frozen=True, slots=True)
class DaskScheduler:
    """A listening scheduler: its address for workers and clients, and the port of its HTTP service."""

    address: str
    host: str
    http_port: int

    @classmethod
    def read(cls, file: Path, host: str) -> Self | None:
        """Return the scheduler that wrote a file; None before it has."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            written: dict[str, Any] = json.loads(file.read_bytes())
            return cls(str(written["address"]), host, int(written["services"]["dashboard"]))
        return None

    def count_workers(self) -> int:
        """Return how many workers have registered; 0 if it does not answer."""
        connection = http.client.HTTPConnection(self.host, self.http_port, timeout=_ASK_DEADLINE_S)
        with suppress(OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            connection.request("GET", "/json/counts.json")
            return int(json.loads(connection.getresponse().read(_MOST_BYTES))["workers"])
        return 0


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
