"""Where a key comes from, and which places are refused."""

from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import InvalidKeyError, PlanError, UsageError
from linkgauge.engine.model.peer import LOOPBACK, Iperf3Login, Iperf3Settings, Peer
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.tui.session.credentials import (
    key_from_environment,
    parse_pasted_key,
    parse_pasted_peer,
    read_fingerprint,
    remember_access,
    with_access,
)

DB = Peer("db-02")
SHA = "ab" * 32


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty configuration directory, and an environment without a key."""
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    monkeypatch.delenv("LINKGAUGE_KEY", raising=False)
    return tmp_path


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    """Write a file of a mode."""
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def key_of(peer: Peer) -> str | None:
    """Return the key that a peer is shown."""
    assert peer.access is not None
    return None if peer.access.key is None else peer.access.key.reveal()


def test_an_empty_variable_counts_as_unset_and_a_wrong_value_is_named() -> None:
    """Its value is not repeated."""
    assert key_from_environment({}) is None
    assert key_from_environment({"LINKGAUGE_KEY": " "}) is None
    with pytest.raises(InvalidKeyError, match=r"^LINKGAUGE_KEY: a key is") as caught:
        key_from_environment({"LINKGAUGE_KEY": "tiny-secret"})
    assert "tiny-secret" not in str(caught.value)


def test_a_named_file_comes_before_the_environment_and_that_before_the_keys_file(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most deliberate one counts."""
    assert with_access(DB).access == Access()
    write(config / "keys", "# all of ours\n\n* any-peers-own-key-1\ndb-02 key-of-db-02-itself # the database\n")
    assert key_of(with_access(DB)) == "key-of-db-02-itself"
    assert key_of(with_access(Peer("web-07"))) == "any-peers-own-key-1"
    assert key_of(with_access(Peer("db-02", 5821))) == "any-peers-own-key-1"
    monkeypatch.setenv("LINKGAUGE_KEY", "key-of-the-environment")
    assert key_of(with_access(DB)) == "key-of-the-environment"
    file = write(config / "file", "key-of-a-file-of-its-own\n")
    assert key_of(with_access(DB, key_file=file)) == "key-of-a-file-of-its-own"


def test_loopback_and_a_peer_that_has_its_key_are_left_alone(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded endpoint asks for none."""
    monkeypatch.setenv("LINKGAUGE_KEY", "key-of-the-environment")
    assert with_access(LOOPBACK) is LOOPBACK
    given = DB.with_key(SharedKey("a-key-of-this-test"))
    assert with_access(given) is given


def test_a_line_of_the_keys_file_may_pin_a_certificate(config: Path) -> None:
    """Its fingerprint stands behind the key, with or without colons."""
    write(config / "keys", f"db-02 key-of-db-02-itself SHA256:{':'.join([SHA[:2]] * 32)}\n")
    access = with_access(DB).access
    assert access is not None
    assert access.fingerprint == bytes.fromhex(SHA)
    assert read_fingerprint(SHA.upper()) == bytes.fromhex(SHA)
    for wrong in ("", "ab" * 31, SHA + "00", "zz" * 32):
        with pytest.raises(PlanError, match="64 hexadecimal digits"):
            read_fingerprint(wrong)


@pytest.mark.parametrize(
    "line", ["db-02", "db-02 short", "db-02 key-of-db-02-itself x", ":5820:x key-of-db-02-itself y z"]
)
def test_a_wrong_line_of_the_keys_file_is_named(config: Path, line: str) -> None:
    """By file and line, whatever peer was asked for."""
    path = write(config / "keys", f"* any-peers-own-key-1\n{line}\n")
    with pytest.raises(InvalidKeyError, match=rf"{path}, line 2: "):
        with_access(DB)


@pytest.mark.parametrize(
    ("stored", "typed"),
    [
        ("db-02", "DB-02"),
        ("db-02", "db-02."),
        ("DB-02.:5820", "db-02"),
        ("2001:db8::1", "2001:DB8:0::1"),
        ("[2001:db8:0:0::1]:5820", "2001:db8::1"),
        ("192.0.2.1", "::ffff:192.0.2.1"),
        ("fe80::1%eth0", "fe80:0::1%eth0"),
        ("b\u00fcro.example", "xn--bro-hoa.example"),
        ("192.0.2.1", "192.0.513"),
    ],
)
def test_another_spelling_of_a_host_has_the_same_key(config: Path, stored: str, typed: str) -> None:
    """Without it, an impostor that asks for no key would be accepted."""
    write(config / "keys", f"{stored} key-of-this-host-alone {SHA}\n")
    peer = with_access(Peer.parse(typed))
    assert key_of(peer) == "key-of-this-host-alone"
    assert peer.access is not None
    assert peer.access.fingerprint == bytes.fromhex(SHA)
    remember_access(Peer.parse(typed).with_key(SharedKey(KEY)))
    assert len((config / "keys").read_text(encoding="utf-8").splitlines()) == 1
    assert key_of(with_access(Peer.parse(stored))) == KEY
    assert key_of(with_access(Peer(Peer.parse(typed).host, 5_999))) is None


def test_a_keys_file_that_is_too_long_is_refused_and_not_cut(config: Path) -> None:
    """The line of a peer may be behind the cut. One of a thousand peers is not too long."""
    lines = "".join(f"host-{number} key-of-host-{number:06}\n" for number in range(3_000))
    path = write(config / "keys", f"{lines}db-02 key-of-db-02-itself\n")
    assert path.stat().st_size > 64 * 1_024
    assert key_of(with_access(DB)) == "key-of-db-02-itself"
    write(path, "# a comment\n" * 100_000)
    with pytest.raises(InvalidKeyError, match=r"longer than 1024 KiB, from line 87382 on: remove the lines"):
        with_access(DB)


@pytest.mark.parametrize("line", [b"db-03 short", b"db-03", b"\xff\xfe", b"db-03 key\x00with\x00zeros-in-it", b"?"])
def test_a_keys_file_that_is_damaged_behind_the_peers_line_is_refused(config: Path, line: bytes) -> None:
    """A line that is passed over could be the line of any peer."""
    path = config / "keys"
    path.write_bytes(b"db-02 key-of-db-02-itself\n\n" + line + b"\n")
    path.chmod(0o600)
    with pytest.raises(InvalidKeyError, match=rf"{path}, line 3\b"):
        with_access(DB)
    with pytest.raises(InvalidKeyError, match=rf"{path}, line 3\b"):
        remember_access(DB.with_key(SharedKey(KEY)))
    path.unlink()
    path.symlink_to(config / "gone")
    with pytest.raises(InvalidKeyError, match="no such file"):
        with_access(DB)


def test_a_key_with_a_number_sign_and_a_file_with_a_byte_order_mark_are_read_whole(config: Path) -> None:
    """What stands behind the sign was cut off as a comment."""
    write(config / "keys", "\ufeffdb-02 a-key-with-one#in-its-middle # a comment\n")
    assert key_of(with_access(DB)) == "a-key-with-one#in-its-middle"
    peer = Peer("db-03").with_key(SharedKey("another#key-of-this-test"))
    remember_access(peer)
    assert key_of(with_access(Peer("db-03"))) == "another#key-of-this-test"
    with pytest.raises(InvalidKeyError, match="cannot be saved"):
        remember_access(Peer("db-03").with_key(SharedKey("#begins-like-a-comment")))


def test_the_keys_file_needs_the_same_permissions(config: Path) -> None:
    """It has every key in it."""
    write(config / "keys", "* any-peers-own-key-1\n", 0o644)
    with pytest.raises(InvalidKeyError, match="chmod 600"):
        with_access(DB)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "localhost", "LOCALHOST.", "::1", "::ffff:127.0.0.1"])
def test_a_key_for_any_peer_leaves_an_endpoint_on_loopback_open_and_its_own_does_not(
    config: Path, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """Another user may listen there, in the place of the endpoint or of a forwarded port that the key is for."""

    def may_be_open(host: str, **options: Any) -> bool:
        access = with_access(Peer(host), **options).access
        assert access is not None
        assert access.key is not None
        return access.may_be_open

    write(config / "keys", f"* any-peers-own-key-1\n[::1]:5999 {KEY}\n")
    assert may_be_open(host)
    monkeypatch.setenv("LINKGAUGE_KEY", KEY)
    assert may_be_open(host)
    assert not may_be_open("db-02")
    assert not may_be_open(host, key_file=write(config / "key", KEY))
    monkeypatch.delenv("LINKGAUGE_KEY")
    write(config / "keys", f"* any-peers-own-key-1\n{Peer(host)} {KEY}\n")
    assert not may_be_open(host)


def test_a_printed_peer_does_not_show_its_key() -> None:
    """Logs and errors may show a peer."""
    peer = DB.with_key(SharedKey("a-key-of-this-test"))
    assert "a-key" not in f"{peer!r} {peer} {peer.access!r}"
    assert peer == DB


KEY = "k-of-an-endpoint-1234"


@pytest.mark.parametrize(
    ("text", "peer", "key", "pin"),
    [
        ("db-02", "db-02:5820", None, False),
        (" [fd00::2]:5830 ", "[fd00::2]:5830", None, False),
        ("ssh://root@db-02", "ssh://root@db-02", None, False),
        (f"LINKGAUGE_KEY={KEY} linkgauge check auto db-02", "db-02:5820", KEY, False),
        (f"$ LINKGAUGE_KEY={KEY} linkgauge check db-02 --tls-fingerprint {SHA}", "db-02:5820", KEY, True),
        (f"linkgauge db-02:5830 --key {KEY}", "db-02:5830", KEY, False),
        (f"sudo /usr/bin/linkgauge run db-02 --key={KEY}", "db-02:5820", KEY, False),
        (f"LINKGAUGE_KEY={KEY} python3 -m linkgauge app db-02", "db-02:5820", KEY, False),
        ("linkgauge loopback", "loopback", None, False),
    ],
)
def test_a_pasted_command_names_the_peer_with_its_key(text: str, peer: str, key: str | None, pin: bool) -> None:
    """As the endpoint prints it, or as the user writes it; an address alone is enough."""
    pasted = parse_pasted_peer(text)
    assert str(pasted).removesuffix(":5820" if peer == "loopback" else "") == peer
    assert (key_of(pasted) if pasted.access else None) == key
    assert (pasted.access is not None and pasted.access.fingerprint is not None) is pin


@pytest.mark.parametrize(
    "text", ["", "two words", "linkgauge run", "linkgauge 'db-02", "linkgauge run db-02 --rate 1G"]
)
def test_other_text_is_no_peer(text: str) -> None:
    """The error says what may be pasted."""
    with pytest.raises(PlanError, match=r"(?i)give|paste"):
        parse_pasted_peer(text)


def test_a_key_is_taken_alone_or_out_of_its_command() -> None:
    """A command without a key, and text without either, are refused in words."""
    for text in (KEY, f" {KEY}\n", f"LINKGAUGE_KEY={KEY}", f"LINKGAUGE_KEY={KEY} linkgauge check auto db-02"):
        assert parse_pasted_key(text).reveal() == KEY
    with pytest.raises(InvalidKeyError, match="no key in it"):
        parse_pasted_key("linkgauge check auto db-02")
    with pytest.raises(InvalidKeyError, match="neither a key nor a command"):
        parse_pasted_key("some other words")


def test_a_remembered_key_is_used_again_and_only_its_owner_can_read_it(config: Path) -> None:
    """A new key takes the place of the old one; other lines and comments stay."""
    write(config / "keys", f"# mine\ndb-01 {KEY}-of-db-01\ndb-02 {KEY}-old\n")
    peer = DB.with_key(SharedKey(KEY))
    path = remember_access(peer)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().splitlines() == ["# mine", f"db-01 {KEY}-of-db-01", f"db-02:5820 {KEY}"]
    assert key_of(with_access(DB)) == KEY


def test_the_first_remembered_key_creates_the_file_with_its_fingerprint(config: Path) -> None:
    """The directory may not exist either."""
    peer = Peer("db-02", 5830, Access(SharedKey(KEY), fingerprint=bytes.fromhex(SHA)))
    config.rmdir()
    assert remember_access(peer).stat().st_mode & 0o777 == 0o600
    assert config.stat().st_mode & 0o777 == 0o700
    access = with_access(Peer("db-02", 5830)).access
    assert access is not None
    assert access.fingerprint == bytes.fromhex(SHA)
    with pytest.raises(InvalidKeyError, match="no key of db-02"):
        remember_access(DB)


def test_an_iperf3_server_keeps_its_kind_and_needs_no_key(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for any peer is not for a server that knows none."""
    monkeypatch.setenv("LINKGAUGE_KEY", "k" * 20)
    write(config / "keys", "* " + "j" * 20 + "\n")
    peer = with_access(Peer.parse("iperf3://host"))
    assert peer.access is None
    assert str(peer) == "iperf3://host:5201"


@pytest.mark.parametrize(
    ("password", "key_text", "words"),
    [
        ("", "a key", "set IPERF3_PASSWORD"),
        ("secret", None, "give --iperf3-public-key FILE"),
        ("secret", "a key", "not a public RSA key"),
        ("two words", "a key", "without white space"),
    ],
)
def test_a_login_that_cannot_work_is_refused_before_anything_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, key_text: str | None, words: str
) -> None:
    """What is missing is named, and the password is not."""
    monkeypatch.setenv("IPERF3_PASSWORD", password)
    path = tmp_path / "public.pem"
    if key_text is not None:
        path.write_text(key_text)
    monkeypatch.setenv("IPERF3_PUBLIC_KEY", str(path) if key_text is not None else "")
    with pytest.raises((UsageError, InvalidKeyError), match=words) as caught:
        with_access(Peer.parse("iperf3://me@host"))
    assert "secret" not in str(caught.value)


def test_the_password_of_an_iperf3_server_is_in_no_text_of_its_peer() -> None:
    """Neither in a log nor in a traceback."""
    peer = Peer("host", iperf3=Iperf3Settings("me", Iperf3Login("secret", b"key")))
    assert "secret" not in f"{peer} {peer!r} {peer.iperf3!r} {Iperf3Login('secret', b'key')!r}"
    assert peer.identity == Peer("host", iperf3=Iperf3Settings("me")).identity
