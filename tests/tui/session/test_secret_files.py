"""Files of secrets: who may read them, and how long they may be."""

from pathlib import Path

import pytest
from linkgauge.engine.model.errors import InvalidKeyError
from linkgauge.tui.session.secret_files import read_secret

TEXT = "a-key-of-this-test\n"


def write(path: Path, mode: int) -> Path:
    """Write the secret into a file with this mode."""
    path.write_text(TEXT)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_file_that_others_can_read_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    """It names the file and the command that mends it."""
    path = write(tmp_path / "key", mode)
    with pytest.raises(InvalidKeyError, match=rf"can be read by others .*mode {mode:o}.*: chmod 600 {path}"):
        read_secret(path, 100, "")


def test_what_a_service_manager_lends_is_read_with_the_permissions_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is the service's alone; no other folder is."""
    path = write(tmp_path / "key", 0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "other"))
    with pytest.raises(InvalidKeyError):
        read_secret(path, 100, "")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_secret(path, 100, "") == TEXT


def test_a_file_that_is_too_long_missing_or_not_text_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """What is in it is not repeated."""
    with pytest.raises(InvalidKeyError, match=r"longer than 1 KiB, from line 54 on: cut it"):
        read_secret(_written(tmp_path / "long", TEXT.encode() * 90), 1_024, "cut it")
    with pytest.raises(InvalidKeyError, match=r"cannot be read: no such file"):
        read_secret(tmp_path / "none", 100, "")
    with pytest.raises(InvalidKeyError, match="line 1, is not text: save it as text"):
        read_secret(_written(tmp_path / "bytes", b"\xff\xfe" * 20), 100, "save it as text")


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path
