"""The devices of a link: their queues, and tools that fail."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from linkgauge.engine.lab.devices import check_tools, qdisc_arguments, run_tool
from linkgauge.engine.lab.link_lab import open_lab
from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.model.errors import LabError, LabUnavailable

ETHERNET = LabLink(100_000_000, 1500, 1500, 24, "ethernet", 16_384, 400_000, smallest_bytes=84)
ATM = LabLink(149_760_000, 9180, 9180, 2, "atm", 37_440, 561_600)


@pytest.mark.usefixtures("lab")
def test_a_link_refused_by_the_kernel_is_reported_with_the_command_and_its_output() -> None:
    """And with a remedy."""
    refused = LabLink(1_000_000, 60, 60, 24, "ethernet", 16_384, 40_000)
    with (
        pytest.raises(LabError, match=r"`ip link set near0 mtu 60` failed: .*needs Linux"),
        open_lab(refused),
    ):
        pass


def test_a_queue_for_single_packets_gets_the_overhead_of_each() -> None:
    """Overhead and cells are counted by tbf itself."""
    arguments = " ".join(qdisc_arguments(ETHERNET))
    assert arguments == "tbf rate 100000000bit burst 16384b limit 401967b overhead 24 mpu 84 linklayer ethernet"
    assert " ".join(qdisc_arguments(ATM)).endswith("overhead 2 mpu 0 linklayer atm")


@pytest.mark.parametrize("buffer_bytes", [1, 15_139, 15_140, 15_141, 40_992])
def test_a_full_queue_has_room_for_small_packets(buffer_bytes: int) -> None:
    """Full-sized frames leave half a frame, for acknowledgements and the control connection."""
    words = qdisc_arguments(replace(ETHERNET, buffer_bytes=buffer_bytes))
    limit = int(words[words.index("limit") + 1].removesuffix("b"))
    assert limit % 1514 == 757
    assert buffer_bytes < limit < buffer_bytes + 2 * 1514


def test_a_queue_for_segment_trains_gets_their_share_of_the_line() -> None:
    """Then the framing of all but the first would not count."""
    fast = LabLink(1_000_000_000, 1500, 1500, 24, "ethernet", 250_000, 4_000_000, grain="batch")
    assert fast.frame_efficiency == Fraction(1514, 1538)
    assert " ".join(qdisc_arguments(fast)) == "tbf rate 984395319bit burst 250000b limit 4000000b"


def test_a_missing_tool_is_named_with_its_debian_package() -> None:
    """So that the user knows what to install."""
    with pytest.raises(LabUnavailable, match=r"a lab needs ip and tc; on Debian: apt install iproute2"):
        check_tools("/nonexistent")


@pytest.mark.parametrize(
    ("message", "kind", "remedy"),
    [
        ("Unknown device type", LabUnavailable, "modprobe veth"),
        ("Operation not permitted", LabUnavailable, "run it as root"),
        ("Something new", LabError, "a lab needs Linux 5.4"),
        ("", LabError, "exit status 2 without a message"),
    ],
)
def test_a_tool_that_fails_is_an_error_with_its_message_and_a_remedy(
    tmp_path: Path, message: str, kind: type[LabError], remedy: str
) -> None:
    """A link that this machine cannot have is another error than one that is wrong."""
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\necho '{message}' >&2\nexit 2\n")
    tool.chmod(0o755)
    with pytest.raises(LabError, match=remedy) as raised:
        run_tool(str(tool), "link", "add")
    assert type(raised.value) is kind
    assert f"`{tool} link add` failed: {message}" in str(raised.value)
