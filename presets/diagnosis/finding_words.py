"""Codes of findings as a few words, for lines that have no room for the sentence of a run. Pure."""

from typing import Final

WHY_WORDS: Final = {
    "at-expected": "at the link's rate",
    "another-link": "faster than the preset allows",
    "no-payload": "nothing arrived",
    "window-below-bdp": "window too small",
    "window-clamped": "window limited by the kernel",
    "window-scaling-off": "no window scaling",
    "receive-window": "receiver too slow",
    "send-buffer": "send buffer too small",
    "core-saturated": "CPU core saturated",
    "cpu-quota": "CPU quota",
    "ssh-data-path": "data goes through ssh",
    "offloads-off": "offloads off",
    "steal": "hypervisor took CPU time",
    "sender-starved": "sender without CPU time",
    "round-trip": "waits for round trips",
    "sessions-few": "too few sessions",
    "loss": "packets lost on the path",
    "loss-bursts": "packets lost in bursts",
    "loss-periodic": "packets lost at regular distances",
    "send-queue-full": "sender's queue full",
    "backlog-full": "receiver's backlog full",
    "socket-buffer-full": "receiver's socket full",
    "policer": "policer on the path",
    "nic-errors": "interface errors",
    "nic-drops": "interface drops frames",
    "pacing": "sender is paced",
    "congestion-window": "congestion window small",
    "acks-queued": "acknowledgements wait behind data",
    "path-slow": "path slower than its line",
    "mtu-mismatch": "MTUs differ",
    "path-mtu": "path MTU small",
    "mss-small": "segments small",
    "timestamps-on": "TCP timestamps on",
    "timestamps-off": "TCP timestamps off",
    "nic-speed": "interface at a lower speed",
    "half-duplex": "half duplex",
    "duplex-mismatch": "duplex mismatch",
    "other-traffic": "other traffic",
    "other-tests": "other tests on the endpoint",
    "rate-limited": "limited by the rate of the test",
    "tester-limited": "this machine is the bottleneck",
    "no-queue": "no queue",
    "queue-local": "queue at this host",
    "queue-remote": "queue at the remote end",
    "queue-path": "queue in the path",
    "unexplained": "cause not found",
}


def why_words(code: str) -> str:
    """Return the code of a finding in words: `path slower than its line`; an unknown code with spaces."""
    return WHY_WORDS.get(code) or "".join(c if c.isprintable() and c != "-" else " " for c in code).strip()
