"""Dask in a lab: the address of its scheduler, and its certificate."""

import json
import ssl
from pathlib import Path

from linkgauge.mesh.lab.dask_cluster import check_dask, create_credentials, read_address


def test_dask_is_there() -> None:
    """The tests' own packages include it."""
    check_dask()


def test_a_schedulers_file_is_read_only_once_it_is_complete(tmp_path: Path) -> None:
    """Not if it is missing, half written, or without an address."""
    file = tmp_path / "scheduler.json"
    assert read_address(file) is None
    for text in ("", '{"address": "tcp', "{}", "[]"):
        file.write_text(text)
        assert read_address(file) is None
    file.write_text(json.dumps({"address": "tcp://127.0.0.1:1"}))
    assert read_address(file) == "tcp://127.0.0.1:1"


def test_each_lab_has_its_own_certificate_that_tls_accepts(tmp_path: Path) -> None:
    """Self-signed, with its key: all parts of the lab use it, and trust nothing else."""
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
    """With the key, anyone could run any code."""
    settings = create_credentials(tmp_path)
    assert (tmp_path / "lab.key").stat().st_mode & 0o777 == 0o600
    assert settings["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "True"
