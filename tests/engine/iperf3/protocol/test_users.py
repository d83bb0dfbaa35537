"""Users of iperf3: tokens of this program and of stock ones, and bytes that are not a user's token."""

import base64
import contextlib
import subprocess
import sys
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.iperf3.protocol.refusals import ErrorNumber, Iperf3Refusal
from linkgauge.engine.iperf3.protocol.users import (
    CHECKS_PER_SECOND,
    MAX_SKEW_S,
    UserList,
    hash_password,
    make_token,
    parse_users,
)
from linkgauge.engine.model.errors import InvalidKeyError

from ...rsa_keys import private_pem, public_pem, server_key

NOW_S = 1_700_000_000.0
PASSWORD = "p4ss,word"  # noqa: S105
USERS = {"mario": hash_password("mario", PASSWORD), "zoë": hash_password("zoë", "x")}


def token_of(user: str = "mario", password: str = PASSWORD, made_s: float = NOW_S, **options: bool) -> str:
    """Return a token, by default a good one."""
    return make_token(user, password, public_pem(), made_s, **options)


def make_list(*, accepts_pkcs1: bool = False) -> UserList:
    """Return the list of the two users."""
    return UserList(USERS, private_pem(server_key()), accepts_pkcs1=accepts_pkcs1)


def encrypt(plaintext: bytes) -> str:
    """Return any text as a token."""
    oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)  # noqa: S303
    return base64.b64encode(server_key().public_key().encrypt(plaintext, oaep)).decode()


def test_a_hash_is_that_of_a_stock_users_file() -> None:
    """The example of iperf3's manual page."""
    expected = "bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b"
    assert hash_password("mario", "rossi") == expected
    assert parse_users(f"# users\n\nmario,{expected.upper()}\r\n") == {"mario": expected}


@pytest.mark.parametrize("user", [("mario", PASSWORD), ("zoë", "x")])
def test_a_token_is_accepted_once(user: tuple[str, str]) -> None:
    """A second time it is somebody else's copy; a new one of the same second is not."""
    users = make_list()
    token = token_of(*user)
    assert users.check(token, NOW_S + 1, 0) == user[0]
    for later_s in (1, MAX_SKEW_S):
        with pytest.raises(Iperf3Refusal, match="used before"):
            users.check(token, NOW_S + later_s, 10**9)
    assert users.check(token_of(*user), NOW_S + 1, 2 * 10**9) == user[0]


def test_a_token_is_valid_for_ten_seconds_of_either_clock() -> None:
    """One of the future is accepted once as well, however long it stays valid."""
    users = make_list()
    for made_s in (NOW_S - MAX_SKEW_S - 1, NOW_S + MAX_SKEW_S + 1):
        with pytest.raises(Iperf3Refusal, match="clocks"):
            users.check(token_of(made_s=made_s), NOW_S, 0)
    token = token_of(made_s=NOW_S + MAX_SKEW_S)
    assert users.check(token, NOW_S, 0) == "mario"
    with pytest.raises(Iperf3Refusal, match="used before"):
        users.check(token, NOW_S + 2 * MAX_SKEW_S, 10**9)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: None, "no user name"),
        (lambda: "", "cannot be decrypted"),
        (lambda: "no base64!", "cannot be decrypted"),
        (lambda: "é", "cannot be decrypted"),
        (lambda: base64.b64encode(bytes(256)).decode(), "cannot be decrypted"),
        (lambda: base64.b64encode(b"\xff" * 256).decode(), "cannot be decrypted"),
        (lambda: base64.b64encode(bytes(4_000)).decode(), "cannot be decrypted"),
        (lambda: encrypt(b""), "cannot be decrypted"),
        (lambda: encrypt(b"user: mario\npwd:  \nts:   1700000000"), "cannot be decrypted"),
        (lambda: encrypt(b"user: a b\npwd:  c\nts:   99999999999999999999"), "cannot be decrypted"),
        (lambda: encrypt(b"user: \x1b[2J\npwd:  c\nts:   1700000000"), "unknown user or wrong password: \ufffd"),
        (lambda: token_of("mario", "wrong"), "unknown user or wrong password: mario"),
        (lambda: token_of("luigi"), "unknown user or wrong password: luigi"),
    ],
)
@pytest.mark.parametrize("accepts_pkcs1", [False, True])
def test_what_is_no_token_of_a_user_is_refused_by_one_number(
    make: Callable[[], str | None], reason: str, accepts_pkcs1: bool
) -> None:
    """A client learns nothing more; the log has the reason, without control characters."""
    with pytest.raises(Iperf3Refusal, match=reason) as caught:
        make_list(accepts_pkcs1=accepts_pkcs1).check(make(), NOW_S, 0)
    assert caught.value.number is ErrorNumber.AUTHORIZATION
    assert str(caught.value).isprintable()


def test_the_old_padding_is_refused_with_the_option_that_accepts_it() -> None:
    """Clients before 3.17 have no other."""
    token = token_of(is_pkcs1=True)
    with pytest.raises(
        Iperf3Refusal, match=r"decrypted with this key; .* before iperf3 3\.17 needs --iperf3-pkcs1"
    ):
        make_list().check(token, NOW_S, 0)
    assert make_list(accepts_pkcs1=True).check(token, NOW_S, 0) == "mario"
    new = token_of()
    assert make_list(accepts_pkcs1=True).check(new, NOW_S, 0) == "mario"


def test_a_flood_of_tokens_is_not_decrypted() -> None:
    """A decryption takes a millisecond and more of the process that serves everybody."""
    users, token = make_list(), token_of("luigi")
    reasons = []
    for _ in range(3 * CHECKS_PER_SECOND):
        with pytest.raises(Iperf3Refusal) as caught:
            users.check(token, NOW_S, 0)
        reasons.append(str(caught.value))
    assert reasons.count("too many logins in a second") == CHECKS_PER_SECOND
    assert users.check(token_of(), NOW_S, 10**9) == "mario"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no user"),
        ("# nobody\n", "there is no user"),
        ("mario", "line 1"),
        ("mario,abc", "line 1"),
        (f"# x\nmario,{'0' * 64}\nmario,{'1' * 64}", "line 3: mario has a line already"),
        (f"ma rio,{'0' * 64}", "line 1"),
        (f",{'0' * 64}", "line 1"),
        (f"mario,{'0' * 64},x", "line 1"),
        ("\x1b[2J", "line 1"),
    ],
)
def test_a_users_file_with_a_wrong_line_is_refused(text: str, problem: str) -> None:
    """A line that is passed over would lock its user out, or let another one in."""
    with pytest.raises(InvalidKeyError, match=problem) as caught:
        parse_users(text)
    assert str(caught.value).isprintable()


@given(st.text() | st.text(alphabet="ab,01\n# "))
def test_any_users_file_is_read_or_refused(text: str) -> None:
    """Nothing but an error of ours."""
    with contextlib.suppress(InvalidKeyError):
        assert parse_users(text)


@pytest.mark.parametrize(
    ("pem", "problem"),
    [
        (lambda: b"", "not a private key"),
        (lambda: b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "not a private key"),
        (public_pem, "not a private key"),
        (lambda: private_pem(server_key(), b"secret"), "passphrase"),
        (lambda: private_pem(ec.generate_private_key(ec.SECP256R1())), "RSA key only"),
        (lambda: private_pem(rsa.generate_private_key(65_537, 1_024)), "1024 bits"),  # noqa: S505
    ],
)
def test_a_private_key_that_cannot_be_used_is_an_error_with_the_remedy(
    pem: Callable[[], bytes], problem: str
) -> None:
    """It is found at the start, not at the first client."""
    with pytest.raises(InvalidKeyError, match=problem):
        UserList(USERS, pem())


@pytest.mark.parametrize(
    ("user", "password", "problem"),
    [("a b", "c", "user name"), ("a", "", "password"), ("a" * 120, "PASS" * 30, "too short")],
)
def test_a_token_that_cannot_be_made_is_an_error(user: str, password: str, problem: str) -> None:
    """It does not have the password."""
    with pytest.raises(InvalidKeyError, match=problem) as caught:
        token_of(user, password)
    assert "PASS" not in str(caught.value)


def test_another_file_in_the_place_of_the_public_key_is_an_error() -> None:
    """The private one, for example."""
    for pem in (b"", private_pem(server_key())):
        with pytest.raises(InvalidKeyError, match="public RSA key"):
            make_token("a", "b", pem, NOW_S)


def test_a_list_that_takes_over_another_has_its_users_and_accepts_no_token_twice() -> None:
    """A reload makes no copy of a token good."""
    users, token = make_list(), token_of()
    users.check(token, NOW_S, 0)
    users.take_over(UserList({"luigi": hash_password("luigi", "x")}, private_pem(server_key())))
    assert users.check(token_of("luigi", "x"), NOW_S, 0) == "luigi"
    with pytest.raises(Iperf3Refusal, match="unknown user"):
        users.check(token_of(), NOW_S, 0)
    users.take_over(make_list())
    with pytest.raises(Iperf3Refusal, match="used before"):
        users.check(token, NOW_S, 0)


def test_a_token_of_before_the_start_is_refused() -> None:
    """An earlier process may have accepted it; which ones it did is not kept."""
    users = make_list()
    users.not_before_s = int(NOW_S)
    with pytest.raises(Iperf3Refusal, match="before this endpoint started"):
        users.check(token_of(made_s=NOW_S - 1), NOW_S, 0)
    assert users.check(token_of(), NOW_S, 0) == "mario"


def test_a_list_does_not_print_its_hashes() -> None:
    """A debug log may have it."""
    assert repr(make_list()) == "UserList(2 users)"


def test_without_the_package_the_error_says_what_to_install() -> None:
    """Everything else of iperf3 works without it."""
    script = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from linkgauge.engine.model.errors import UsageError\n"
        "from linkgauge.engine.iperf3.protocol.users import make_token\n"
        "try: make_token('a', 'b', b'', 0)\n"
        "except UsageError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert "[iperf3]" in done.stdout
