"""Fixtures of the tests over HTTP/2."""

from pathlib import Path

import pytest
import trustme
from linkgauge.engine.control.tls import Certificate

from ....engine.certificates import CertificateFiles


@pytest.fixture(autouse=True)
def own_run_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the runs of a test in its folder."""
    monkeypatch.setenv("LINKGAUGE_DATA_DIR", str(tmp_path))


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    """Return a certificate, whose context the service changes."""
    files = CertificateFiles(tmp_path, trustme.CA())
    return Certificate.load(files.cert, files.key)
