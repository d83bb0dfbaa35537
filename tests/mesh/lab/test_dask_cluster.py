"""Dask in a lab: the answers of its scheduler, and its certificate."""

import json
import ssl
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from linkgauge.mesh.lab.dask_cluster import DaskScheduler, check_dask, create_credentials

ANSWERS = {"counts": b'{"workers": 7}', "other": b'{"hosts": 7}', "text": b"no JSON", "list": b"[]"}


class Answering(BaseHTTPRequestHandler):
    """A handler that answers with the server's text."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.end_headers()
        self.wfile.write(ANSWERS[getattr(self.server, "answer", "counts")])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the standard library
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """Give a server on loopback."""
    with HTTPServer(("127.0.0.1", 0), Answering) as listening:
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield listening
        listening.shutdown()
        thread.join()


def test_dask_is_there() -> None:
    """The tests' own packages include it."""
    check_dask()


def test_a_file_is_read_only_once_it_is_complete(tmp_path: Path) -> None:
    """Not if it is missing, half written, or without an address and a port."""
    file = tmp_path / "scheduler.json"
    assert DaskScheduler.read(file, "127.0.0.1") is None
    for text in ("", '{"address": "tcp', "{}", '{"address": "tcp://127.0.0.1:1", "services": {}}'):
        file.write_text(text)
        assert DaskScheduler.read(file, "127.0.0.1") is None
    file.write_text(json.dumps({"address": "tcp://127.0.0.1:1", "services": {"dashboard": 2}}))
    assert DaskScheduler.read(file, "127.0.0.1") == DaskScheduler("tcp://127.0.0.1:1", "127.0.0.1", 2)


@pytest.mark.parametrize(("answer", "count"), [("counts", 7), ("other", 0), ("text", 0), ("list", 0)])
def test_workers_are_counted_by_the_schedulers_answer(server: HTTPServer, answer: str, count: int) -> None:
    """An answer without a count is 0: the lab continues to wait."""
    server.answer = answer  # type: ignore[attr-defined]
    assert DaskScheduler("tcp://127.0.0.1:1", "127.0.0.1", server.server_address[1]).count_workers() == count


def test_a_scheduler_that_does_not_answer_has_no_workers(server: HTTPServer) -> None:
    """As before its start and after its end."""
    port = server.server_address[1]
    server.shutdown()
    server.server_close()
    assert DaskScheduler("tcp://127.0.0.1:1", "127.0.0.1", port).count_workers() == 0


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
