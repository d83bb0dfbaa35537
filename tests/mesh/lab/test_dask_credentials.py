"""The certificate of a Dask cluster on loopback."""

import ssl
from pathlib import Path

from linkgauge.mesh.lab.dask_credentials import create_credentials


def test_each_lab_has_a_certificate_of_its_own_that_tls_takes(tmp_path: Path) -> None:
    """Self-signed, with its key: all that belong to the lab use it, and trust it alone."""
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        settings = create_credentials(folder)
        authority, certificate, key = (
            settings[f"DASK_DISTRIBUTED__COMM__TLS__{name}"] for name in ("CA_FILE", "CLIENT__CERT", "CLIENT__KEY")
        )
        ssl.create_default_context(cafile=authority).load_cert_chain(certificate, key)
    assert (folders[0] / "lab.key").read_bytes() != (folders[1] / "lab.key").read_bytes()


def test_only_their_owner_reads_the_key_and_dask_takes_no_plain_connection(tmp_path: Path) -> None:
    """Whoever has the key can run any code."""
    settings = create_credentials(tmp_path)
    assert (tmp_path / "lab.key").stat().st_mode & 0o777 == 0o600
    assert settings["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
