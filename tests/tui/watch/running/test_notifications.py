"""Notifications: real programs and a real HTTP server get the JSON of a change; failures become sentences."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import Plan
from linkgauge.tui.watch.running import notifications
from linkgauge.tui.watch.running.notifications import Notifier, post, run_command
from linkgauge.watch.events import ChangeFound, Level, Metric, Receiver
from linkgauge.watch.watch_plan import Notify, WatchedPeer, WatchPlan

from ....json_schemas import validator

NOTIFICATION = {"$ref": "https://linkgauge.invalid/schemas/watch.schema.json#/$defs/notification"}
CHANGE = ChangeFound(
    1e9, "db-1", Metric.GOODPUT_BIT_S, 1e9 - 60, Level(94e6, 93e6, 95e6, 20), Level(56e6, 55e6, 57e6, 5), True
)


class _Answers(BaseHTTPRequestHandler):
    """Takes posts to /hook, and with the new token to /token; redirects others to a file."""

    def do_POST(self) -> None:
        """Take a post."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/token" and self.headers["Authorization"] != "new":
            self.send_response(401)
        elif self.path in {"/hook", "/token"}:
            self.server.taken.append(json.loads(body))  # type: ignore[attr-defined]
            self.server.headers.append(self.headers)  # type: ignore[attr-defined]
            self.send_response(204)
        else:
            self.send_response(302)
            self.send_header("Location", "file:///etc/hostname")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """Give an HTTP server on loopback; `taken` has the posts."""
    with HTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.taken = []  # type: ignore[attr-defined]
        server.headers = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def test_a_program_and_an_address_get_the_same_change(tmp_path: Path, server: HTTPServer) -> None:
    """As in the stream, with the watch's name and a sentence."""
    target = tmp_path / "change.json"
    program = (sys.executable, "-c", f"import sys; open({str(target)!r}, 'w').write(sys.stdin.read())")
    notify = Notify(program, f"http://127.0.0.1:{server.server_port}/hook")
    plan = WatchPlan("office", (WatchedPeer("db-1", LOOPBACK, Plan()),), notify)
    problems: list[str] = []
    told: list[tuple[object, ...]] = []
    notifier = Notifier(lambda text, _peer: problems.append(text), lambda *note: told.append(note))
    notifier.send(plan, CHANGE)
    await notifier.close()
    assert problems == []
    assert told[-1] == (CHANGE, None, ())
    assert [receiver for _, receiver, _ in told[:-1]] in ([Receiver.EXEC], [Receiver.WEBHOOK])
    document = json.loads(target.read_text())
    validator("watch.schema.json").evolve(schema=NOTIFICATION).validate(document)
    assert (document["type"], document["watch"], document["peer"]) == ("level_change", "office", "db-1")
    assert document["text"].startswith("db-1: rate fell")
    assert server.taken == [document]  # type: ignore[attr-defined]


async def test_a_webhook_gets_the_headers_of_a_file_that_only_its_owner_may_read(
    tmp_path: Path, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each post reads it again. A file of others, or with other lines, is refused in words without its text."""
    monkeypatch.setattr(notifications, "_PAUSES_S", ())
    file, url = tmp_path / "headers", f"http://127.0.0.1:{server.server_port}/hook"
    file.write_text("Authorization: Bearer tk_secret\n\nX-Site: north\n")
    file.chmod(0o600)
    assert await post(url, b"{}", print, {"Content-Type": "application/json"}, str(file)) is None
    (headers,) = server.headers  # type: ignore[attr-defined]
    assert (headers["Authorization"], headers["X-Site"]) == ("Bearer tk_secret", "north")
    assert headers["Content-Type"] == "application/json"
    for text, mode, words in (
        ("Authorization Bearer tk_secret", 0o600, "line 1 is not a header"),
        ("A: b\x1fc", 0o600, "line 1 is not a header"),
        ("A: b", 0o644, "chmod 600"),
    ):
        file.write_text(text)
        file.chmod(mode)
        problem = await post(url, b"{}", print, {}, str(file))
        assert problem is not None
        assert words in problem
        assert "tk_secret" not in problem
    assert len(server.taken) == 1  # type: ignore[attr-defined]


async def test_a_token_that_expires_before_its_file_is_replaced_loses_no_message(
    tmp_path: Path, server: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receiver refuses the old one, and the file is away for a moment: both are tried again, and said once."""
    monkeypatch.setattr(notifications, "_PAUSES_S", (0.1,) * 200)
    file, said = tmp_path / "headers", list[str]()
    file.write_text("Authorization: old\n")
    file.chmod(0o600)
    posting = asyncio.create_task(
        post(f"http://127.0.0.1:{server.server_port}/token", b"{}", said.append, {}, str(file))
    )
    async with asyncio.timeout(30):
        while not said:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        file.unlink()
        await asyncio.sleep(0.3)
        file.touch(0o600)
        file.write_text("Authorization: new\n")
        assert await posting is None
    assert len(said) == 1
    assert "did not take it, and is tried again: it answered 401" in said[0]
    assert len(server.taken) == 1  # type: ignore[attr-defined]


async def test_a_mail_whose_server_is_away_is_sent_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sendmail without a queue of its own ends with EX_TEMPFAIL then. Another status is not tried again."""
    monkeypatch.setattr(notifications, "_PAUSES_S", (0.05,) * 3)
    count, said = tmp_path / "count", list[str]()
    script = f"echo >> {count}; test $(wc -l < {count}) -gt 2 || {{ echo no server; exit 75; }}"
    assert await run_command(("/bin/sh", "-c", script), b"{}", said.append, "email") is None
    assert said == ["email: /bin/sh did not take it, and is tried again: ended with status 75: no server"]
    count.unlink()
    never = await run_command(("/bin/sh", "-c", "exit 75"), b"{}", print)
    assert never == "exec: /bin/sh did not take it, 4 times: ended with status 75"


async def test_a_program_that_ends_without_reading_does_not_end_the_notification() -> None:
    """Its input is closed before the text is written."""
    problems = [await run_command(("/bin/false",), b"x" * 100_000, print) for _ in range(20)]
    assert problems == ["exec: /bin/false ended with status 1"] * 20


async def test_a_transport_that_is_closed_already_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop's transport then raises RuntimeError: the news would be on its way for ever."""

    def write(_writer: asyncio.StreamWriter, _data: bytes) -> None:
        raise RuntimeError("the handler is closed")

    monkeypatch.setattr(asyncio.StreamWriter, "write", write)
    told: list[tuple[object, ...]] = []
    problems: list[str] = []
    notifier = Notifier(lambda text, _peer: problems.append(text), lambda *note: told.append(note))
    plan = WatchPlan("office", (WatchedPeer("db-1", LOOPBACK, Plan()),), Notify(("/bin/false",)))
    notifier.send(plan, CHANGE)
    await notifier.close()
    assert problems == ["exec: /bin/false ended with status 1"]
    assert told == [(CHANGE, None, (Receiver.EXEC,))]


async def test_a_mail_goes_through_the_sendmail_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The addresses are arguments behind `--`, and the message is on its input."""
    note = tmp_path / "mail"
    program = tmp_path / "sendmail"
    program.write_text(f'#!/bin/sh\necho "$@" > {note}\ncat >> {note}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    plan = WatchPlan("office", (WatchedPeer("db-1", LOOPBACK, Plan()),), Notify(email=("ops@example.net",)))
    problems: list[str] = []
    notifier = Notifier(lambda text, _peer: problems.append(text), lambda *_note: None)
    notifier.send(plan, CHANGE)
    await notifier.close()
    assert problems == []
    arguments, _, message = note.read_text().partition("\n")
    assert arguments == "-i -- ops@example.net"
    assert "Subject: linkgauge office: db-1 has become worse" in message
    assert "\r" not in message


async def test_a_webhook_that_is_away_does_not_delay_the_program(tmp_path: Path) -> None:
    """The program gets the next change at once, which is noted. A change is told once both have it."""
    target = tmp_path / "peers"
    program = (
        sys.executable,
        "-c",
        f"import json, sys; print(json.load(sys.stdin)['at_s'], file=open({str(target)!r}, 'a'))",
    )
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    plan = WatchPlan(
        "office", (WatchedPeer("db-1", LOOPBACK, Plan()),), Notify(program, f"http://127.0.0.1:{port}/hook")
    )
    told: list[tuple[object, ...]] = []
    notifier = Notifier(lambda _text, _peer: None, lambda *note: told.append(note))
    for number in range(3):
        notifier.send(plan, replace(CHANGE, at_s=CHANGE.at_s + number))
    async with asyncio.timeout(30):
        while not target.exists() or target.read_text().count("\n") < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert [float(line) for line in target.read_text().split()] == [CHANGE.at_s + number for number in range(3)]
    await notifier.close()
    assert [(note, missed) for _, note, missed in told] == [(Receiver.EXEC, ())] * 3


async def test_a_program_that_fails_says_so_in_a_sentence_of_bounded_length() -> None:
    """With its status and the beginning of its output."""
    problem = await run_command((sys.executable, "-c", "print('x' * 100_000); raise SystemExit(7)"), b"{}", print)
    assert problem is not None
    assert "status 7: xxx" in problem
    assert len(problem) < 600
    missing = await run_command(("/no/such/program",), b"{}", print)
    assert missing is not None
    assert "cannot be started" in missing


async def test_a_program_does_not_get_keys_and_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """All else of the environment is passed on."""
    for name in ("LINKGAUGE_KEY", "IPERF3_PASSWORD", "MINE"):
        monkeypatch.setenv(name, f"value of {name}")
    problem = await run_command(("/bin/sh", "-c", "env | grep 'value of'; exit 1"), b"{}", print)
    assert problem is not None
    assert problem.endswith(": MINE=value of MINE")


async def test_a_program_that_reads_nothing_and_never_ends_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch does not wait for it any longer."""
    monkeypatch.setattr(notifications, "TIMEOUT_S", 0.3)
    problem = await run_command((sys.executable, "-c", "import time; time.sleep(60)"), b"x" * 1_000_000, print)
    assert problem is not None
    assert "was killed" in problem


async def test_a_redirect_to_another_scheme_is_not_followed(server: HTTPServer) -> None:
    """It counts as a refusal that another try would not change."""
    problem = await post(f"http://127.0.0.1:{server.server_port}/moved", b"{}", print)
    assert problem is not None
    assert "refused it: it answered 30" in problem


async def test_a_receiver_that_cannot_get_anything_is_reported_before_the_first_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that is not there, a file of headers that others can read, a host without sendmail."""
    monkeypatch.setattr(notifications, "_SENDMAIL_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    file, said = tmp_path / "headers", list[tuple[str, str | None]]()
    file.write_text("A: b")
    file.chmod(0o644)
    notifier = Notifier(lambda *each: said.append(each), lambda *_note: None)
    notifier.check(Notify(("/no/tell",), "http://a/", headers_file=str(file), email=("ops@example.net",)))
    assert [peer for _, peer in said] == [None] * 3
    assert "exec: there is no program /no/tell" in said[0][0]
    assert "chmod 600" in said[1][0]
    assert "email: this host has no sendmail" in said[2][0]
    said.clear()
    file.chmod(0o600)
    (tmp_path / "sendmail").touch(0o755)
    notifier.check(Notify(("/bin/sh",), "http://a/", headers_file=str(file), email=("ops@example.net",)))
    notifier.check(Notify())
    assert said == []


async def test_a_watch_without_receivers_sends_nothing() -> None:
    """It does not even make the JSON."""
    notifier = Notifier(lambda _text, _peer: None, lambda *_note: None)
    notifier.send(WatchPlan("office", (WatchedPeer("db-1", LOOPBACK, Plan()),)), CHANGE)
    await asyncio.wait_for(notifier.close(), 10)


async def test_an_answer_that_is_not_http_is_a_problem_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A port of another protocol. Later notifications go on."""
    monkeypatch.setattr(notifications, "_PAUSES_S", (0.01,))

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1_000)
        writer.write(b"220 mail.example ESMTP\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        problem = await post(f"http://127.0.0.1:{port}/hook", b"{}", print)
    assert problem is not None
    assert "220 mail.example ESMTP" in problem


async def test_a_webhook_whose_name_does_not_resolve_is_reported_by_that_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The resolver's error has a number and no name."""
    monkeypatch.setattr(notifications, "_PAUSES_S", ())
    problem = await post("http://hooks.invalid/news", b"{}", print)
    assert problem is not None
    assert "hooks.invalid does not resolve to an address (" in problem
    assert "Errno" not in problem


async def test_a_webhook_that_is_away_is_told_when_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first failure is reported."""
    monkeypatch.setattr(notifications, "_PAUSES_S", (0.2,) * 20)
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
    said: list[str] = []
    posting = asyncio.create_task(post(f"http://127.0.0.1:{port}/hook", b"{}", said.append))
    await asyncio.sleep(0.5)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        writer.write(b"HTTP/1.0 204 No Content\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", port):
        assert await asyncio.wait_for(posting, 30) is None
    assert len(said) == 1
    assert "is tried again" in said[0]


async def test_a_program_is_killed_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell script that waits for another program is two processes."""
    monkeypatch.setattr(notifications, "TIMEOUT_S", 1.0)
    note = tmp_path / "pid"
    problem = await run_command(("/bin/sh", "-c", f"sleep 60 & echo $! > {note}; wait"), b"{}", print)
    assert problem is not None
    pid = int(note.read_text())
    deadline = time.monotonic() + 10
    while is_running(pid):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
