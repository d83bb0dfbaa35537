"""A certificate of a test, in files."""

import hashlib
import ssl
from datetime import datetime
from pathlib import Path

import trustme


class CertificateFiles:
    """A certificate and its private key in a folder, and the fingerprint, computed in another way."""

    def __init__(
        self,
        folder: Path,
        authority: trustme.CA,
        not_before: datetime | None = None,
        not_after: datetime | None = None,
    ) -> None:
        issued = authority.issue_cert("db-02", not_before=not_before, not_after=not_after)
        self.cert, self.key = folder / "cert.pem", folder / "key.pem"
        issued.cert_chain_pems[0].write_to_path(self.cert)
        self.key.touch(0o600)
        issued.private_key_pem.write_to_path(self.key)
        self.fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.cert.read_text())).digest()
