"""The file of a watch: its values, and an error for each wrong one with its place."""

import re
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import LinkgaugeError, PlanError, UsageError
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.verdict import AcceptanceLimits
from linkgauge.presets.wire import Variant
from linkgauge.tui.watch.running.watch_file import parse_watch, read_watch_file
from linkgauge.watch.watch_plan import Notify, Timing

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "packaging" / "watch.example.toml"
FILE = Path("office.toml")
PEER = '[[peer]]\naddress = "db-1"\n'
HOUR_NS = 3_600 * SECOND_NS


def test_the_example_is_a_watch_with_every_table() -> None:
    """Its values are those of its comments."""
    plan = read_watch_file(EXAMPLE, load_catalog([]))
    assert (plan.name, plan.budget_bytes) == ("office", 50 << 30)
    assert plan.notify == Notify(("/usr/local/bin/tell", "--linkgauge"), "https://alerts.example.net/linkgauge")
    first, second, third = plan.peers
    assert (first.name, first.pass_percent, first.preset, first.budget_bytes) == ("db-1", 95.0, "auto", None)
    assert (first.plan.settings.sessions, first.plan.settings.direction) == (4, Direction.IN)
    assert first.timing == Timing(HOUR_NS, 60 * SECOND_NS, 0.1, 1, 30 * SECOND_NS)
    assert (second.peer.ssh is not None, second.timing.check_every_ns, second.timing.jitter) == (
        True,
        6 * HOUR_NS,
        0.2,
    )
    assert (second.plan.rate_bit_s, second.budget_bytes) == (100_000_000, 10 << 30)
    assert (third.peer.iperf3 is not None, third.preset, third.plan.bytes_limit) == (True, None, 500 << 20)


def test_a_peer_needs_no_more_than_an_address() -> None:
    """Names come from the file and the host."""
    plan = parse_watch(PEER, FILE)
    assert (plan.name, plan.peers[0].name, plan.notify, plan.budget_bytes) == ("office", "db-1", Notify(), None)
    assert plan.peers[0].timing == Timing()


def test_a_peer_s_own_value_counts_before_the_default() -> None:
    """Also a value that switches something off."""
    defaults = '[watch.defaults]\nprobe_every = "30s"\nseconds = 5\nworkload = "udp"\nrate = "10M"\n'
    first, second = parse_watch(
        defaults + PEER + '[[peer]]\naddress = "db-2"\nprobe_every = "none"\nrate = "max"\nseconds = "2m"', FILE
    ).peers
    assert (first.timing.probe_every_ns, second.timing.probe_every_ns) == (30 * SECOND_NS, None)
    assert (first.plan.duration_ns, second.plan.duration_ns) == (5 * SECOND_NS, 120 * SECOND_NS)
    assert first.plan.workload is Workload.UDP
    assert (first.plan.settings.rate_bit_s, second.plan.settings.rate_bit_s) == (10_000_000, None)


def test_a_peer_has_the_link_options_of_the_command_line() -> None:
    """By the same words, with underscores."""
    keys = 'line_rate = "2.5G"\nmtu = 1400\nipv6 = true\nvlan = 1\ntunnel = "gre"\ntimestamps = false\n'
    options = Variant(6, False, vlan_tags=1, tunnel="gre", line_rate_bit_s=2_500_000_000, mtu_bytes=1400)
    assert parse_watch(PEER + keys, FILE).peers[0].variant == options


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "office.toml: no [[peer]]; give one for each peer"),
        ("[watch]\nname = ", "office.toml is not TOML: Invalid value (at"),
        (
            PEER + f"sessions = {'9' * 5_000}",
            "office.toml cannot be read: a number or a nesting in it is too large",
        ),
        ("a." * 20_000 + "a = 1", "office.toml is not TOML: A key has over 64 parts (at line 1, column 1)"),
        (PEER + f"sessions = {'9' * 4_000}", f"peer[1].sessions '{'9' * 59} is invalid; give 1 to 128"),
        ("[[peer]]\nname = 'a'", 'office.toml: peer[1] has no address; give address = "HOST"'),
        (
            PEER + '[[peer]]\naddress = "b"\nevery = "soon"',
            "office.toml: peer[2].every 'soon' is invalid; give a time",
        ),
        (PEER + "evry = 1", "office.toml: peer[1].evry is not known; did you mean every?"),
        (PEER + "zzz = 1", "office.toml: peer[1].zzz is not known; known here: name, address, preset"),
        ("[watchh]\n" + PEER, "office.toml: watchh is not known; did you mean watch?"),
        ("[watch.defaults]\naddress = 'a'\n" + PEER, "office.toml: watch.defaults.address is not known"),
        ("[watch.defaults]\nretests = 'often'\n" + PEER, "watch.defaults.retests 'often' is invalid; give 0 to 10"),
        ("[watch]\nbudget = true\n" + PEER, "office.toml: watch.budget True is invalid; give a text or a number"),
        ("[watch]\nbudget = 'much'\n" + PEER, "watch.budget 'much' is invalid; give a size such as \"500M\""),
        ("watch = 1\n" + PEER, "office.toml: watch 1 is invalid; give a table: [watch]"),
        (PEER + "every = 0", "office.toml: peer[1].every 0 s is invalid; give 1 s to 366 days"),
        (PEER + "jitter = 2", "office.toml: peer[1].jitter 2 is invalid; give 0 to 0.5"),
        (PEER + "jitter = 'x%'", "peer[1].jitter 'x%' is invalid; give a share of the period"),
        (PEER + "pass = 0", "peer[1].pass 0 % is invalid; give more than 0"),
        (PEER + "seconds = 'none'", "peer[1].seconds none is invalid; each test of a watch needs an end"),
        (PEER + "seconds = 0.1", "peer[1].seconds 0.1 is invalid; give 0.5 to 86400 seconds"),
        ("[watch.defaults]\nseconds = 0.1\n" + PEER, "watch.defaults.seconds 0.1 is invalid; give 0.5 to"),
        ("[watch.defaults]\nseconds = 9\n" + PEER + "seconds = 0.1", "peer[1].seconds 0.1 is invalid"),
        (PEER + "mss = 1", "peer[1].mss 1 is invalid; give 88"),
        (PEER + "dscp = 99", "peer[1].dscp 99 is invalid"),
        (PEER + "congestion = '%'", "peer[1].congestion '%' is invalid"),
        (PEER + "warmup = 9.9", "peer[1].warmup 9.9 is invalid; give at most 90 % of seconds"),
        (PEER + "workload = 'cream'", "peer[1].workload 'cream' is invalid; give stream, rr"),
        (PEER + "direction = 'up'", "peer[1].direction 'up' is invalid; give out, in, duplex"),
        (PEER + "workload = 'udp'", "peer[1].rate none is invalid; datagrams need a rate"),
        (PEER + "request = 5", "peer[1].request 5 is invalid; a stream has no request; give workload rr"),
        (PEER + "nodelay = 1", "peer[1].nodelay 1 is invalid; give true or false"),
        (PEER + "workload = 'udp'\nrate = '1M'\nnodelay = true", "peer[1].nodelay with udp is invalid; only TCP"),
        (PEER + "workload = 'rr'\nmode = 'sendfile'", "peer[1].mode sendfile with rr is invalid; its messages"),
        (PEER + "name = 'a b'", "peer[1].name 'a b' is invalid; give up to 64 letters"),
        (PEER + PEER, "office.toml: peers 'db-1' is invalid; give each peer a name of its own"),
        (PEER + "password = 'x'", "peer[1].password: keys and passwords do not belong into this file"),
        (
            PEER + "preset = 'gbe-fd-150'",
            "office.toml: peer[1].preset: preset 'gbe-fd-150' is not known; did you mean",
        ),
        ("[[peer]]\naddress = 'http://a'", "peer[1].address 'http://a' is invalid; give HOST"),
        (
            "[notify]\nexec = 'tell me'\n" + PEER,
            "notify.exec 'tell me' is invalid; give a program and its arguments",
        ),
        (PEER + "preset = 'none'\nmtu = 1400", "peer[1].link options MTU 1400 is invalid; they need a preset"),
        (PEER + "preset = '10mb-hd'\nvlan = 1", "peer[1].link options VLAN is invalid; 10mb-hd is half duplex"),
        (PEER + "vlan = 3", "peer[1].vlan 3 is invalid; give 0, 1 or 2 (QinQ)"),
        (PEER + "line_rate = 'fast'", "peer[1].line_rate 'fast' is invalid; give"),
        (PEER + "ipv6 = 1", "peer[1].ipv6 1 is invalid; give true or false"),
        (
            "[notify]\nexec = ['x', \"a\\u0000\"]\n" + PEER,
            "notify.exec 'a\\x00' is invalid; give words without NUL",
        ),
        ("[notify]\nexec = []\n" + PEER, "notify.exec [] is invalid"),
        (
            "[notify]\nwebhook = 'ftp://a'\n" + PEER,
            "notify.webhook 'ftp://a' is invalid; give an http://",
        ),
        ("[notify]\nemail = ['ops']\n" + PEER, "notify.email 'ops' is invalid; give addresses"),
        ("[notify]\nquiet = '22-7'\n" + PEER, "notify.quiet '22-7' is invalid; give two times"),
        ("[notify]\nformat = 'slack'\n" + PEER, "notify.format given is invalid; give the webhook as well"),
        ("[notify]\nformat = 'teams'\n" + PEER, "notify.format 'teams' is invalid; give json, slack"),
        ("[notify]\nrepeat = '1s'\n" + PEER, "notify.repeat 1 s is invalid; give 1 minute"),
        ("[[host]]\naddress = 'a'\n" + PEER, "office.toml: this host, "),
        ("host = 1\n" + PEER, "host 1 is invalid; give tables: [[host]]"),
        ("[[host]]\nnam = 'a'", "host[1].nam is not known; did you mean name?"),
        (PEER + "max_loss = 101", "peer[1].max_loss '101' is invalid; give 0 to 100 percent"),
        (PEER + "min_rate = 5", "peer[1].min_rate '5' is invalid; give"),
        (PEER + "shared = 1", "peer[1].shared 1 is invalid; give true or false"),
        (
            PEER + "workload = 'rr'\nmax_loss = 1",
            "peer[1].limits with rr is invalid; max_loss and min_rate are for",
        ),
        (PEER + "workload = 'rr'\nmax_rise = 30", "peer[1].max_rise with rr is invalid; it is for TCP streams"),
        (
            "[[peer]]\naddress = 'iperf3://a'\nmax_rise = 30",
            "peer[1].max_rise with iperf3://a:5201 is invalid; iperf3 answers no",
        ),
        ("[notify]\nwebhok = 'http://a'\n" + PEER, "notify.webhok is not known; did you mean webhook?"),
    ],
)
def test_a_wrong_value_is_named_with_its_place_and_a_remedy(text: str, message: str) -> None:
    """The file, the path of the key, the value, the remedy."""
    with pytest.raises(LinkgaugeError, match=re.escape(message)):
        parse_watch(text, FILE, load_catalog([]))


HOSTS = """
[watch.defaults]
max_loss = "0.5%"
[[host]]
name = "a"
address = "192.0.2.1"
[[host]]
name = "b"
address = "192.0.2.2:5900"
min_rate = "80M"
shared = true
[[host]]
name = "c"
address = "192.0.2.3"
max_rise = 30
[[peer]]
name = "site"
address = "192.0.2.9"
"""


def test_each_host_of_a_file_tests_the_others_and_every_peer() -> None:
    """The name of a pair has both hosts, so that two hosts do not tell different things of one name."""
    plan = parse_watch(HOSTS, FILE, here="a")
    assert [(each.name, str(each.peer)) for each in plan.peers] == [
        ("a_to_b", "192.0.2.2:5900"),
        ("a_to_c", "192.0.2.3:5820"),
        ("a_to_site", "192.0.2.9:5820"),
    ]
    assert [each.name for each in parse_watch(HOSTS, FILE, here="c").peers] == ["c_to_a", "c_to_b", "c_to_site"]
    own = parse_watch(HOSTS.replace('"b"', f'"{socket.gethostname()}"'), FILE)
    assert [each.peer.host for each in own.peers] == ["192.0.2.1", "192.0.2.3", "192.0.2.9"]
    with pytest.raises(UsageError, match=r"d is not a .* name one of them with --host: a, b, c"):
        parse_watch(HOSTS, FILE, here="d")
    with pytest.raises(UsageError, match=r"a is not a .* --host: none"):
        parse_watch(PEER, FILE, here="a")
    with pytest.raises(UsageError, match=r"no \[\[peer"):
        parse_watch('[[host]]\nname = "a"\naddress = "192.0.2.1"', FILE, here="a")


def test_limits_and_sharing_are_keys_of_a_peer() -> None:
    """A limit of latency lets each test measure it."""
    first, second, third = parse_watch(HOSTS, FILE, here="a").peers
    assert first.limits == AcceptanceLimits(0.005, 80_000_000)
    assert second.limits == AcceptanceLimits(0.005, max_rise_ns=30_000_000)
    assert (first.is_shared, second.is_shared) == (True, False)
    assert [each.plan.responsiveness is not None for each in (first, second, third)] == [False, True, False]


def test_a_path_is_traced_by_tests_that_load_it() -> None:
    """Which measures latency as well; iperf3 and other workloads have no such trace."""
    (peer,) = parse_watch(f"{PEER}path = true\nmax_rise = '30ms'", FILE).peers
    assert peer.plan.path
    assert peer.plan.responsiveness is not None
    assert not parse_watch(f"{PEER}path = false", FILE).peers[0].plan.path
    for text, message in (
        (f"{PEER}path = true\nworkload = 'rr'", r"peer\[1\]\.path .*only a TCP stream loads the path"),
        ("[[peer]]\naddress = 'iperf3://db-01'\npath = true", r"path with iperf3://db-01:5201 .*answers no probe"),
        (f"{PEER}path = 'yes'", "give true or false"),
    ):
        with pytest.raises(PlanError, match=message):
            parse_watch(text, FILE)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """It is missing, not text, or too large."""
    path = tmp_path / "w.toml"
    with pytest.raises(LinkgaugeError, match=re.escape(f"{path}: no such file")):
        read_watch_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(LinkgaugeError, match="is not UTF-8"):
        read_watch_file(path)
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(LinkgaugeError, match="is larger than 1 MiB"):
        read_watch_file(path)


def test_the_name_of_the_file_must_be_able_to_name_the_watch() -> None:
    """Or the file names it."""
    with pytest.raises(PlanError, match="watch 'my office'"):
        parse_watch(PEER, Path("my office.toml"))
    assert parse_watch('[watch]\nname = "office"\n' + PEER, Path("my office.toml")).name == "office"


@given(st.text(), st.integers(0, EXAMPLE.stat().st_size), st.integers(0, 40))
def test_any_change_of_the_example_is_a_watch_or_an_error_in_words(inserted: str, place: int, cut: int) -> None:
    """No other exception escapes."""
    text = EXAMPLE.read_text(encoding="utf-8")
    try:
        parse_watch(text[:place] + inserted + text[place + cut :], FILE)
    except LinkgaugeError as error:
        message = str(error)
        assert message.startswith("office.toml")


@pytest.mark.parametrize(("host", "ip", "only_ip"), [("db-02", "6", 6), ("db-02", "4", 4)])
def test_a_peer_of_a_file_is_reached_over_its_ip_version(host: str, ip: str, only_ip: int) -> None:
    """In the same way as with -4 and -6."""
    watch = parse_watch(f'[[peer]]\naddress = "{host}"\nip = {ip}\n', Path("watch.toml"))
    assert watch.peers[0].peer.only_ip == only_ip
    whole = parse_watch(f'[watch.defaults]\nip = {ip}\n[[peer]]\naddress = "{host}"\n', Path("watch.toml"))
    assert whole.peers[0].peer.only_ip == only_ip


@pytest.mark.parametrize(("ip", "problem"), [("5", "give 4 or 6"), ("6", "192.0.2.7 is an IPv4 address")])
def test_an_ip_version_that_an_address_cannot_have_is_an_error(ip: str, problem: str) -> None:
    """It names the file and the peer."""
    with pytest.raises(PlanError, match=rf"watch.toml: peer\[1\].*{problem}"):
        parse_watch(f'[[peer]]\naddress = "192.0.2.7"\nip = {ip}\n', Path("watch.toml"))
