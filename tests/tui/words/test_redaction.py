"""Stand-ins for addresses and names: found in any text, the same for one host, and none for what says nothing."""

import pytest
from linkgauge.tui.words.redaction import Redaction


@pytest.fixture
def redaction() -> Redaction:
    """Give stand-ins that know two hosts."""
    made = Redaction("mine.example.net")
    made.is_on = True
    made.learn_host("db-02", "10.20.0.2", "fd00::2")
    return made


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("db-02 (10.20.0.2:5820)", "host-2 (host-2:5820)"),
        ("connected to mine, then mine.example.net.", "connected to host-1, then host-1."),
        ("[fd00::2]:5820 is db-02's, fd00::2: 5 Mb/s", "[host-2]:5820 is host-2's, host-2: 5 Mb/s"),
        ("::ffff:192.0.2.7, 2001:db8::, fe80::1%eth0", "host-3, host-4, host-5"),
        ("192.0.2.7, 198.51.100.7 and 192.0.2.7", "host-3, host-4 and host-3"),
        ("ssh://alice@db-02:22 and ssh://bob@db-02", "ssh://user-1@host-2:22 and ssh://user-2@host-2"),
        ("/home/alice/run.csv, /Users/bob", "/home/user-1/run.csv, /Users/user-2"),
        ("eth0 02:00:5e:10:00:01", "eth0 mac-1"),
        ("db-0…, 10.20.0… and d…2", "host-2, host-2 and d…2"),
        ("127.0.0.1, [::1], loopback, 0.0.0.0 and ::", "127.0.0.1, [::1], loopback, 0.0.0.0 and ::"),
        ("at 12:34:56 version 1.2.3 lost 0.25 % of db-020", "at 12:34:56 version 1.2.3 lost 0.25 % of db-020"),
    ],
)
def test_every_address_and_known_name_has_a_stand_in(redaction: Redaction, text: str, redacted: str) -> None:
    """One for each host, whatever its name there."""
    assert redaction.text(text) == redacted
    assert redaction.document({"db-02": [text, 1, None]}) == {"db-02": [redacted, 1, None]}
    redaction.is_on = False
    assert redaction.text(text) == text


@pytest.mark.parametrize(
    "line",
    [
        "│ db-02            10.20.0.2  94 % │",
        "│ 198.51.100.27 │ out",
        "host  db-02  x  10.20.0.2  end",
        "db-02",
        "mine   9",
    ],
)
def test_a_line_of_a_screen_keeps_its_length(redaction: Redaction, line: str) -> None:
    """The border and the next column stay in their places if there is any room."""
    text = redaction.line(line)
    assert len(text) == len(line)
    assert "db-02" not in text
    assert "10.20" not in text
    assert text.endswith(line[-1]) or "  " not in line
