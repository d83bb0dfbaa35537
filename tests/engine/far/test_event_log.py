"""The event log of an endpoint: repeated rejections of strangers are summed up, everything else is logged."""

import asyncio

from linkgauge.engine.far.event_log import MAX_LINES, MAX_NETWORKS, MAX_SOURCES, EventLog
from linkgauge.engine.far.status import EndpointTotals, LogEntry

from ..waiting import until

DEADLINE_S = 20.0
NEVER_S = 3_600.0
WRONG_KEY = "rejected: wrong key"


def rejection(client: str = "192.0.2.7", text: str = WRONG_KEY, event: str = "dropped") -> LogEntry:
    """Return the entry of a rejection."""
    return LogEntry(event, text, client=client)


async def test_the_first_rejection_is_logged_at_once_and_the_others_as_their_number() -> None:
    """Each address and reason by itself; a summary is an entry of the same event, with the number as a field."""
    lines: list[str] = []
    log = EventLog(lines.append, NEVER_S)
    for _ in range(413):
        log.log_entry(rejection())
    log.log_entry(rejection("2001:db8::7"))
    log.log_entry(rejection(text="rejected: protocol 1"))
    assert lines == [
        "192.0.2.7: rejected: wrong key",
        "2001:db8::7: rejected: wrong key",
        "192.0.2.7: rejected: protocol 1",
    ]
    log.close()
    [summary] = lines[3:]
    assert summary == "192.0.2.7: rejected: wrong key: 412 more connections in 1 s"
    assert isinstance(summary, LogEntry)
    assert (summary.event, summary.fields["connections"], summary.fields["seconds"]) == ("dropped", 412, 1)


async def test_an_interval_without_a_rejection_ends_the_summaries() -> None:
    """An address that goes on gets a line an interval; later its next rejection is logged at once again."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    log = EventLog(lines.put_nowait, 0.05)
    log.log_entry(rejection())
    assert lines.get_nowait() == f"192.0.2.7: {WRONG_KEY}"
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(2):
            log.log_entry(rejection())
            assert await lines.get() == f"192.0.2.7: {WRONG_KEY}: 1 more connection in 1 s"
        await until(lambda: not log.is_counting)
    assert lines.empty()
    log.log_entry(rejection())
    assert lines.get_nowait() == f"192.0.2.7: {WRONG_KEY}"
    log.close()
    assert lines.empty()


async def test_a_crowd_of_addresses_is_counted_together() -> None:
    """An attacker has as many IPv6 addresses as connections: neither the log nor the memory grows with them."""
    lines: list[str] = []
    log = EventLog(lines.append, NEVER_S)
    for number in range(2_000):
        log.log_entry(rejection(f"2001:db8::{number:x}"))
    assert len(lines) == MAX_SOURCES
    log.close()
    assert lines[MAX_SOURCES:] == [
        f"rejected: {2_000 - MAX_SOURCES} more connections from other addresses or for other reasons in 1 s"
    ]


async def test_an_address_has_a_budget_of_lines_whatever_they_say() -> None:
    """Texts that differ, with its tests among them; other addresses have their own, and this host's lines none."""
    lines: list[str] = []
    log = EventLog(lines.append, NEVER_S)
    for number in range(3 * MAX_LINES):
        log.log_entry(rejection(f"2001:db8::{number:x}", f"rejected: a window of {number} bytes", "refused"))
        log.log_entry(LogEntry("client", "connected", client=f"2001:db8::{number:x}"))
        log.log_entry("limits read again")
    log.log_entry(LogEntry("client", "connected", client="192.0.2.7"))
    assert lines.count("limits read again") == 3 * MAX_LINES
    lines = [line for line in lines if line != "limits read again"]
    assert len(lines) == MAX_LINES + 1
    assert lines[-1] == "192.0.2.7: connected"
    log.close()


async def test_the_end_of_a_run_that_was_seen_to_begin_is_logged_whatever_else_the_client_causes() -> None:
    """It has kept its line. A run whose beginning was left out is left out whole."""
    lines: list[str] = []
    log = EventLog(lines.append, NEVER_S)
    client = "192.0.2.7"
    log.log_entry(LogEntry("run_began", "started: udp", client=client))
    for number in range(MAX_LINES - 3):
        log.log_entry(LogEntry("client", f"connected: {number}", client=client))
    log.log_entry(LogEntry("run_began", "started: rr", client=client))
    for _ in range(2):
        log.log_entry(LogEntry("run_ended", "finished", client=client, reason="completed"))
    assert [line for line in lines if "connected" not in line] == [
        f"{client}: started: udp",
        f"{client}: finished",
    ]
    log.close()
    assert lines[-1] == f"{client}: 2 more lines in 1 s, over its {MAX_LINES} a minute"


async def test_what_was_left_out_is_counted_and_the_next_minute_has_a_budget_again() -> None:
    """By address, and together beyond as many addresses as fit into memory."""
    lines: list[str] = []
    log = EventLog(lines.append, 0.05)
    for number in range(MAX_LINES + 7):
        log.log_entry(LogEntry("client", f"connected: {number}", client="192.0.2.7"))
    for number in range(MAX_NETWORKS + 2):
        log.log_entry(LogEntry("client", "connected", client=f"2001:db8:0:{number:x}::1"))
    assert len(lines) == MAX_LINES + MAX_NETWORKS - 1
    async with asyncio.timeout(DEADLINE_S):
        await until(lambda: not log.is_counting)
    seconds = f"in 1 s, over its {MAX_LINES} a minute"
    assert lines[-2:] == [f"192.0.2.7: 7 more lines {seconds}", "3 more lines from other addresses in 1 s"]
    log.log_entry(LogEntry("client", "connected", client="192.0.2.7"))
    assert lines[-1] == "192.0.2.7: connected"
    log.close()


async def test_every_event_is_counted_though_its_line_is_summed_up() -> None:
    """A rejection counts by the limit that it names, at once; a run by the reason of its end."""
    log = EventLog(lambda _line: None, NEVER_S)
    assert log.counts.read() == EndpointTotals()
    for _ in range(3):
        log.log_entry(rejection())
        log.log_entry(LogEntry("refused", "rejected: full", client="192.0.2.7", limit="clients"))
    log.log_entry(LogEntry("refused", "rejected: its key has changed", limit=None))
    for event in ("admitted", "client", "run_began", "probe", "probe"):
        log.log_entry(LogEntry(event, event, client="192.0.2.8", key="alice"))
    for reason in ("completed", "completed", "peer_lost"):
        log.log_entry(LogEntry("run_ended", "finished", reason=reason, received_bytes=10**9, sent_bytes=7))
    log.log_entry("something else")
    assert log.counts.read() == EndpointTotals(
        clients=1,
        runs={"completed": 2, "peer_lost": 1},
        rejections={"dropped": 3, "clients": 3, "declined": 1},
        received_bytes=3 * 10**9,
        sent_bytes=21,
        probes=2,
        clients_by_key={"alice": 1},
    )
    log.close()
