"""Limits: which there are, where they come from, and whom they turn away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.far.clients.admission import Admission, ConnectBackLimit
from linkgauge.engine.far.memory_estimate import estimate_memory, windows_of
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import AddressRefused, InvalidLimitError, LimitReached, RequestDeclined
from linkgauge.engine.model.limits import Limits, TokenBucket, is_in_networks, limit_rules
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload

HOURS_NS = 3_600 * SECOND_NS


def test_every_limit_is_on_by_default_and_explained() -> None:
    """Each has a value within its own bounds, and words; only the lists begin empty."""
    limits = Limits()
    for name, rule in limit_rules().items():
        value = getattr(limits, name)
        assert rule.description
        assert value == () if rule.unit == "networks" else rule.low <= value <= rule.high


def test_a_file_and_typed_text_are_parsed_alike() -> None:
    """Numbers as numbers or text, rates with their letter, networks as a list or between commas."""
    limits = Limits.from_toml('clients = 8\nrate_bit_s = "2.5G"\nallow = ["10.0.0.0/8", "2001:db8::1"]\n')
    assert (limits.clients, limits.rate_bit_s) == (8, 2_500_000_000)
    assert limits.allow == ("10.0.0.0/8", "2001:db8::1/128")
    typed = limits.with_changes({"clients": " 9 ", "rate_bit_s": "800 Mbit/s", "deny": "192.0.2.7, 10.1.0.0/16"})
    assert (typed.clients, typed.rate_bit_s, typed.sessions) == (9, 800_000_000, limits.sessions)
    assert typed.deny == ("192.0.2.7/32", "10.1.0.0/16")
    assert typed.allow == limits.allow


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("client = 8", "limit client: unknown; give one of clients, "),
        ("clients = 0", "clients=0: give 1 to"),
        ("clients = true", "clients=true: give a number from 1 to 4096"),
        ("clients = 1.5", "clients=1.5: give a number"),
        ("clients = []", "clients"),
        ('clients = "1e9"', "clients=1e9: give a number"),
        ("sessions = 129", "give 1 to 128"),
        ("rate_bit_s = '10 bananas'", "rate_bit_s=10 bananas: give a number such as 10G"),
        ("allow = 7", "allow: give networks"),
        ("allow = ['10.0.0.0/33']", r"allow=10\.0\.0\.0/33: give networks such as"),
        ("allow = [{}]", "give networks such as"),
        ("clients = ", "line 1 is not TOML: write NAME = VALUE"),
        ("[clients]", "clients"),
        pytest.param("clients = " + "9" * 5_000, "line 1 is not TOML", id="digits without end"),
        pytest.param("clients = 0x" + "f" * 5_000, "line 1 is not TOML", id="hexadecimal digits without end"),
        pytest.param("clients = " + "9" * 4_000, "clients=9{40}: give 1 to 4096", id="many digits"),
        pytest.param("allow = " + "[" * 5_000, "line 1 is not TOML", id="lists without end"),
        pytest.param("\n" + "a." * 20_000 + "a = 1", "line 2 is not TOML", id="keys of keys without end"),
    ],
)
def test_a_limit_that_cannot_be_is_named(text: str, words: str) -> None:
    """With what can be."""
    with pytest.raises(InvalidLimitError, match=words):
        Limits.from_toml(text)


@given(
    st.dictionaries(
        st.sampled_from(list(limit_rules())), st.text(max_size=12) | st.integers() | st.none(), max_size=3
    )
)
def test_any_bad_limit_raises_only_a_limits_problem(given_: dict[str, object]) -> None:
    """Whatever is typed."""
    try:
        Limits().with_changes(given_)
    except InvalidLimitError as error:
        assert "limit" in str(error)  # noqa: PT017 - some can be, most cannot


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("11.1.2.3", False),
        ("2001:db8::5", True),
        ("2001:db9::5", False),
        ("fe80::1%eth0", True),
    ],
)
def test_an_address_is_within_networks_of_its_own_family(address: str, expected: bool) -> None:
    """IPv4 that is written as IPv6 is what it is, and a scope is none of the address."""
    assert is_in_networks(address, ("10.0.0.0/8", "2001:db8::/32", "fe80::/10")) is expected


def test_deny_comes_before_allow_and_an_empty_allow_is_everybody() -> None:
    """The log names the list, and the client does not learn it."""
    Admission().check_address("192.0.2.1")
    admission = Admission(Limits(allow=("192.0.2.0/24",), deny=("192.0.2.66/32",)))
    admission.check_address("192.0.2.1")
    for address, limit, words in (("192.0.2.66", "deny", "is denied"), ("2001:db8::1", "allow", "is not allowed")):
        with pytest.raises(AddressRefused, match=r"^it does not serve your address$") as caught:
            admission.check_address(address)
        assert caught.value.limit == limit
        assert caught.value.operator_text.startswith(f"{address} {words} (limit {limit} is 192.0.2.")


def test_clients_are_counted_in_all_and_by_address_and_leave_again() -> None:
    """One that is refused is not counted, and one that has left makes room."""
    admission = Admission(Limits(clients=3, clients_per_address=2))
    with admission.admit("a"), admission.admit("a"):
        with pytest.raises(LimitReached, match=r"maximum of clients from a.*clients_per_address is 2"):
            admission.admit("a").__enter__()
        with admission.admit("b"):
            with pytest.raises(LimitReached, match=r"maximum of clients.*clients is 3"):
                admission.admit("c").__enter__()
            assert len(admission.admitted_clients) == 3
    assert len(admission.admitted_clients) == 0
    with admission.admit("a"):
        assert len(admission.admitted_clients) == 1


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("fe80::1%eth0", "fe80::2%eth0", False),
        ("fe80::1%eth0", "fe80::1%eth1", False),
        ("fe80::1%eth0", "FE80::1%eth0", True),
    ],
)
def test_clients_of_one_ipv6_network_count_as_one_address(first: str, second: str, is_same: bool) -> None:
    """A host has all addresses of its network of 64 bits; on a link, each host has one network."""
    admission = Admission(Limits(clients_per_address=1))
    with admission.admit(first):
        if is_same:
            with pytest.raises(LimitReached, match="clients_per_address is 1"):
                admission.admit(second).__enter__()
        else:
            with admission.admit(second):
                assert len(admission.admitted_clients) == 2


def test_memory_and_samples_of_all_clients_count_together() -> None:
    """Of every address; a client that has left gives both back."""
    plan = Plan(Settings(sessions=8), interval_ns=SECOND_NS // 10, workers=4, block_bytes=1 << 24)
    need = estimate_memory(plan, windows_of(plan.settings), 4)
    for limits, limit in (
        (Limits(samples_s=159), "samples_s is 159"),
        (Limits(memory_bytes=2 * need - 1), f"memory_bytes is {2 * need - 1}"),
    ):
        admission = Admission(limits)
        with admission.admit("192.0.2.1") as second:
            with admission.admit("192.0.2.2") as first:
                admission.reserve(first, plan, windows_of(plan.settings))
                with pytest.raises(LimitReached, match=limit):
                    admission.reserve(second, plan, windows_of(plan.settings))
                admission.reserve(first, plan, windows_of(plan.settings))  # its own does not count twice
            admission.reserve(second, plan, windows_of(plan.settings))


def test_a_run_is_checked_against_limits_of_sessions_duration_and_rate() -> None:
    """Each refusal names its limit; a run without an end is let in, and ended when it has lasted as long."""
    admission = Admission(Limits(sessions=4, duration_s=3_600, rate_bit_s=10**9))
    admission.check_plan(Plan(Settings(sessions=4), duration_ns=HOURS_NS), 10**9)
    admission.check_plan(Plan(duration_ns=None), 0)
    with pytest.raises(LimitReached, match=r"5 sessions are too many .*limit sessions is 4"):
        admission.check_plan(Plan(Settings(sessions=5)), 0)
    with pytest.raises(LimitReached, match=r"a run of 7200 s is too long .*limit duration_s is 3600"):
        admission.check_plan(Plan(duration_ns=2 * HOURS_NS), 0)
    with pytest.raises(LimitReached, match=r"busy with other tests.*limit rate_bit_s"):
        admission.check_plan(Plan(), 1_001_000_000)


def test_changed_limits_apply_to_new_clients_and_none_is_admitted_after_the_end() -> None:
    """A refusal at the end is none of a limit's."""
    admission = Admission()
    with admission.admit("a"):
        admission.limits = Limits(clients=1)
        with pytest.raises(LimitReached, match="clients is 1"):
            admission.admit("b").__enter__()
        admission.close("it is shutting down")
        with pytest.raises(RequestDeclined, match=r"^it is shutting down$"):
            admission.check_plan(Plan(), 0)
    with pytest.raises(RequestDeclined, match="shutting down"):
        admission.admit("a").__enter__()


def test_a_bucket_gives_a_rate_and_twice_as_many_at_once() -> None:
    """After a pause of any length no more than that; time that stands still gives nothing."""
    bucket = TokenBucket(10, 0)
    assert sum(bucket.take(0) for _ in range(100)) == 20
    assert sum(bucket.take(SECOND_NS) for _ in range(100)) == 10
    assert sum(bucket.take(HOURS_NS) for _ in range(100)) == 20
    assert not bucket.take(HOURS_NS)
    assert bucket.take(HOURS_NS + SECOND_NS // 10)


def test_connections_back_to_a_client_have_a_rate() -> None:
    """Bursts may be twice as large; other directions and workloads take nothing of it."""
    limit = ConnectBackLimit(Limits(connect_back=2), Workload.CRR)
    for _ in range(9):
        limit.take(Direction.OUT, 0)
        ConnectBackLimit(Limits(connect_back=0), Workload.RR).take(Direction.IN, 0)
    for _ in range(4):
        limit.take(Direction.IN, 0)
    with pytest.raises(LimitReached, match=r"too many new sessions of crr inwards in a second .*connect_back is 2"):
        limit.take(Direction.IN, 0)
    limit.take(Direction.IN, SECOND_NS // 2)
    with pytest.raises(LimitReached, match="too many"):
        limit.take(Direction.IN, SECOND_NS // 2)
    with pytest.raises(LimitReached, match=r"give --direction out .*connect_back is 0"):
        ConnectBackLimit(Limits(connect_back=0), Workload.CRR).take(Direction.IN, 0)


@pytest.mark.parametrize("network", ["::ffff:192.0.2.0/120", "::ffff:192.0.2.7", "::ffff:0:0/96"])
def test_a_network_of_ipv4_that_is_written_as_ipv6_excludes_its_addresses(network: str) -> None:
    """It was accepted, and excluded nobody: addresses are compared as IPv4."""
    for limits in (Limits(deny=(network,)), Limits().with_changes({"deny": network})):
        with pytest.raises(AddressRefused):
            limits.check_address("192.0.2.7")
        limits.check_address("2001:db8::1")


@pytest.mark.parametrize("name", ["allow", "deny"])
@pytest.mark.parametrize("value", ["", " , ", [""]])
def test_a_list_of_networks_from_an_empty_variable_is_refused(name: str, value: object) -> None:
    """As no list it would serve everybody."""
    with pytest.raises(InvalidLimitError, match=f"limit {name} is empty: give networks"):
        Limits().with_changes({name: value})
    assert Limits().with_changes({name: []}) == Limits()
