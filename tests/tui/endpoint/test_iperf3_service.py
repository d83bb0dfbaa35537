"""The service of iperf3 clients: its access, its port, and reading its users again."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from linkgauge.engine.far.status import LogEntry
from linkgauge.engine.iperf3.protocol.refusals import Iperf3Refusal
from linkgauge.engine.iperf3.protocol.users import hash_password, make_token
from linkgauge.engine.model.errors import EndpointError, InvalidKeyError, UsageError
from linkgauge.tui.endpoint.endpoint_setup import EndpointConfig, prepare_endpoint
from linkgauge.tui.endpoint.iperf3_service import Iperf3Config, prepare_iperf3, reload_users

from ...engine.rsa_keys import private_pem, public_pem, server_key

NOW_S = 1_700_000_000.0


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    """Write a file of a mode."""
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.fixture
def user_files(tmp_path: Path) -> tuple[str, str]:
    """Give a users file and a private key."""
    users = write(tmp_path / "users.csv", f"mario,{hash_password('mario', 'rossi')}\n")
    key = write(tmp_path / "private.pem", private_pem(server_key()).decode())
    return str(users), str(key)


@pytest.mark.parametrize("bind", [None, "0.0.0.0", "::"])  # noqa: S104
@pytest.mark.parametrize(("is_open", "has_users"), [(False, False), (True, False), (False, True), (True, True)])
def test_other_hosts_are_served_only_openly_or_with_users(
    user_files: tuple[str, str], bind: str | None, is_open: bool, has_users: bool
) -> None:
    """In the same way an endpoint needs a key for other hosts."""
    config = Iperf3Config(0, user_files if has_users else None)
    if not is_open and not has_users:
        with pytest.raises(UsageError, match="prove no key: give --open"):
            prepare_iperf3(config, bind, is_open=is_open)
        return
    setup = prepare_iperf3(config, bind, is_open=is_open)
    with setup.listener:
        assert not setup.is_loopback
        assert setup.facts() == {"port": setup.port, "asks_for_user": has_users}
        assert ("--username" in setup.client_command("192.0.2.1")) is has_users
        assert setup.access == ("with a user name" if has_users else "without any key")


@pytest.mark.parametrize("bind", ["127.0.0.1", "::1", "localhost"])
def test_this_host_is_served_without_any_of_them(bind: str) -> None:
    """Other hosts do not reach it."""
    setup = prepare_iperf3(Iperf3Config(0), bind, is_open=False)
    with setup.listener:
        assert setup.access == "of this host only"
        assert setup.client_command("192.0.2.1").startswith("iperf3 -c 192.0.2.1")
        assert setup.client_command("192.0.2.1").endswith(f" -p {setup.port}")


def test_a_port_in_use_is_an_error_that_names_the_option() -> None:
    """Then the endpoint closes its own port."""
    first = prepare_iperf3(Iperf3Config(0), "127.0.0.1", is_open=False)
    config = EndpointConfig("127.0.0.1", 0, iperf3=Iperf3Config(first.port))
    with first.listener, pytest.raises(EndpointError, match="--iperf3"):
        prepare_endpoint(config, lambda _entry: None)


def test_the_configuration_reaches_the_process_that_serves(user_files: tuple[str, str]) -> None:
    """As JSON."""
    for iperf3 in (None, Iperf3Config(5201), Iperf3Config(0, user_files, accepts_pkcs1=True)):
        config = EndpointConfig(None, 5820, iperf3=iperf3)
        assert EndpointConfig.from_json(json.dumps(asdict(config))) == config


@pytest.mark.parametrize("which", [0, 1])
def test_files_of_users_that_others_can_read_are_refused(user_files: tuple[str, str], which: int) -> None:
    """The hash of a short password is soon guessed."""
    Path(user_files[which]).chmod(0o644)
    with pytest.raises(InvalidKeyError, match=f"chmod 600 {user_files[which]}"):
        prepare_iperf3(Iperf3Config(0, user_files), "127.0.0.1", is_open=False)


@pytest.mark.parametrize("which", [0, 1])
def test_files_of_users_that_cannot_be_used_are_named(user_files: tuple[str, str], which: int) -> None:
    """Before anything listens."""
    write(Path(user_files[which]), "nothing of the kind\n")
    with pytest.raises(InvalidKeyError, match=user_files[which]):
        prepare_iperf3(Iperf3Config(0, user_files), "127.0.0.1", is_open=False)


def test_users_are_read_again_and_bad_files_change_nothing(user_files: tuple[str, str]) -> None:
    """The log has both."""
    config, entries = Iperf3Config(0, user_files), list[str]()
    users = config.read_users()
    assert users is not None

    def reload() -> list[str]:
        reload_users(config, users, entries.append)
        return [entry.event for entry in entries if isinstance(entry, LogEntry)]

    def is_user(name: str, password: str, clock_ns: int) -> bool:
        try:
            users.check(make_token(name, password, public_pem(), NOW_S), NOW_S, clock_ns)
        except Iperf3Refusal:
            return False
        return True

    write(Path(user_files[0]), f"luigi,{hash_password('luigi', 'verdi')}\n")
    assert reload() == ["reloaded"]
    assert (is_user("mario", "rossi", 0), is_user("luigi", "verdi", 0)) == (False, True)
    write(Path(user_files[0]), "mario\n")
    assert reload() == ["reloaded", "not_reloaded"]
    assert "line 1" in str(entries[-1])
    assert (is_user("mario", "rossi", 0), is_user("luigi", "verdi", 0)) == (False, True)
