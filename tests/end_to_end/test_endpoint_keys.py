"""Keys for several clients of one endpoint, with real commands: names in log and metrics, rotation with overlap."""

import json
import re
import signal
import socket
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ..command_line import RATE_LIMIT, wait_for_rows

DEADLINE_S = 40.0
BRIEF = ("--warmup", "0", "--interval", "100ms", *RATE_LIMIT, "--json")


def add(linkgauge: Any, path: Path, name: str) -> dict[str, str]:
    """Add a key, and return the environment of the client that gets it: from the line that is printed once."""
    answer = linkgauge("endpoint", "key", "add", name, "--key-file", path)
    assert answer.status == 0, answer
    heading, line = answer.out.splitlines()
    assert heading == f"New key of {name}, shown only once. On the other host:"
    assignment, *command = line.split()
    assert command == ["linkgauge", "check", socket.gethostname()]
    assert assignment.startswith("LINKGAUGE_KEY=")
    return {**linkgauge.environment, "LINKGAUGE_KEY": assignment.partition("=")[2]}


def listed(linkgauge: Any, path: Path) -> list[str]:
    """Return the names that are listed, without their dates; no key is among the words."""
    answer = linkgauge("endpoint", "key", "list", "--key-file", path)
    assert answer.status == 0, answer
    rows = [re.fullmatch(r"(\S+) +added \d{4}-\d\d-\d\d", line) for line in answer.out.splitlines()]
    return [row[1] for row in rows if row is not None]


def test_each_client_has_a_key_of_its_own_and_keys_change_under_a_running_test(
    linkgauge: Any, tmp_path: Path
) -> None:
    """Two clients are told apart; a removed key is refused as any wrong one is; the run with it goes on."""
    keys, rows = tmp_path / "keys", tmp_path / "rows.csv"
    alice, bob = add(linkgauge, keys, "alice"), add(linkgauge, keys, "bob")
    stranger = {**linkgauge.environment, "LINKGAUGE_KEY": "a-key-of-nobody-here"}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(DEADLINE_S)
        options = (
            "--bind",
            "127.0.0.1",
            "--port",
            "0",
            "--key-file",
            keys,
            "--metrics",
            "0",
            "--json",
            "--log-json",
        )
        notified = {**linkgauge.environment, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        endpoint = linkgauge.start("endpoint", *options, env=notified)
        assert manager.recv(100) == b"READY=1"
        facts = json.loads(endpoint.stdout.readline())["listening"]
        assert facts["asks_for_key"]
        peer = f"127.0.0.1:{facts['port']}"
        running = linkgauge.start("run", peer, "--seconds", "none", *BRIEF, "--csv", rows, env=alice)
        wait_for_rows(rows, running, 2)
        assert linkgauge("run", peer, "--seconds", "0.5", *BRIEF, env=bob).status == 0
        carol = add(linkgauge, keys, "carol")
        assert linkgauge("endpoint", "key", "remove", "alice", "--key-file", keys).status == 0
        assert listed(linkgauge, keys) == ["bob", "carol"]
        endpoint.send_signal(signal.SIGHUP)
        assert manager.recv(100) == b"READY=1"
        refused = [linkgauge("run", peer, *BRIEF, env=env) for env in (alice, stranger)]
        assert [(each.status, each.out) for each in refused] == [(3, "")] * 2
        assert refused[0].err == refused[1].err
        for env in (bob, carol):
            assert linkgauge("run", peer, "--seconds", "0.5", *BRIEF, env=env).status == 0
        with urllib.request.urlopen(facts["metrics"], timeout=DEADLINE_S) as scraped:  # noqa: S310
            text = scraped.read().decode()
        assert dict(
            re.findall(r'^linkgauge_endpoint_admitted_clients_total\{key="(.*)"\} (.+)$', text, re.MULTILINE)
        ) == {
            "": "0.0",
            "bob": "2.0",
            "carol": "1.0",
        }
        wait_for_rows(rows, running, 2)
        running.send_signal(signal.SIGINT)
        assert linkgauge.finish(running).status == 0
        endpoint.terminate()
        ended = linkgauge.finish(endpoint)
    log = [json.loads(line) for line in ended.err.splitlines()]
    assert [each["key"] for each in log if each["event"] == "client"] == ["alice", "bob", "bob", "carol"]
    assert [each["key"] for each in log if each["event"] == "run_ended"] == ["bob", "bob", "carol", "alice"]
    assert [each.get("key") for each in log if each["event"] == "dropped"] == [None, None]
    assert "one of its 2 keys" in next(each["text"] for each in log if "key file" in each["text"])
    assert not [each for each in (alice, bob, carol) if each["LINKGAUGE_KEY"] in ended.err + ended.out]


@pytest.mark.every
def test_a_key_that_had_no_name_stays_valid_beside_the_first_that_has_one(linkgauge: Any, tmp_path: Path) -> None:
    """The user is told its new name. A wrong line is named by its number, and nothing of it is printed."""
    keys = tmp_path / "keys"
    keys.touch(0o600)
    keys.write_text("the-key-of-all-so-far\n")
    answer = linkgauge("endpoint", "key", "add", "alice", "--key-file", keys)
    assert "stays valid, by the name default" in answer.err
    assert keys.read_text().startswith("default the-key-of-all-so-far\nalice ")
    answer = linkgauge("endpoint", "key", "add", "alice", "--key-file", keys)
    assert (answer.status, answer.out) == (2, "")
    assert "has a key of alice already" in answer.err
    keys.write_text("alice the-key-of-alice\nbob secret-word another-word\n")
    for command in (("endpoint", "--port", "0"), ("endpoint", "key", "list"), ("endpoint", "key", "add", "carol")):
        answer = linkgauge(*command, "--key-file", keys)
        assert (answer.status, answer.out) == (2, "")
        assert f"{keys}, line 2: a line is NAME KEY" in answer.err
        assert "word" not in answer.err


@pytest.mark.every
def test_without_a_file_named_the_commands_and_the_endpoint_use_the_same_one(
    linkgauge: Any, tmp_path: Path
) -> None:
    """It is in the configuration directory; options of the endpoint in front of its commands are refused."""
    linkgauge.environment["LINKGAUGE_CONFIG_DIR"] = str(tmp_path / "config")
    answer = linkgauge("endpoint", "key")
    assert (answer.status, answer.out) == (0, "")
    assert "no keys: there is no file" in answer.err
    answer = linkgauge("endpoint", "key", "add", "alice", "--json")
    document = json.loads(answer.out)
    assert document["key_file"] == str(tmp_path / "config" / "endpoint-keys")
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", "--json")
    peer = f"127.0.0.1:{json.loads(endpoint.stdout.readline())['listening']['port']}"
    assert linkgauge("run", peer, *BRIEF).status == 3
    env = {**linkgauge.environment, "LINKGAUGE_KEY": document["key"]}
    assert linkgauge("run", peer, "--seconds", "0.5", *BRIEF, env=env).status == 0
    endpoint.terminate()
    assert "(key alice): connected" in linkgauge.finish(endpoint).err
    for words, text in (
        (("endpoint", "--open", "key"), "--open is in front of a command"),
        (("endpoint", "kex"), "there is no command 'kex'; did you mean linkgauge endpoint key?"),
    ):
        answer = linkgauge(*words)
        assert answer.status == 2
        assert text in answer.err


def test_a_directory_for_keys_that_cannot_be_made_is_named(linkgauge: Any, tmp_path: Path) -> None:
    """With the way out."""
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "linkgauge"
    linkgauge.environment["LINKGAUGE_CONFIG_DIR"] = str(folder)
    answer = linkgauge("endpoint", "key", "add", "bob")
    assert answer.status == 2
    assert f"the directory {folder} cannot be made: not a directory; give a file elsewhere" in answer.err
