"""The dialog with which a device joins, and the cockpit around it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.browser.page_messages import with_page
from linkgauge.engine.model.peer import AWAITED_BROWSER, Peer
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.protocol.foreign.missing_features import Feature, why_unavailable
from linkgauge.tui.readings.waited_device import WaitedDevice

from ..app_driver import before_snapshot
from ..stored_runs import notifications

PHONE = Peer("192.168.1.23", is_browser=True)
# The code of http://192.168.1.10:8080/#483920, as segno draws it.
CODE = tuple("█▀▄ ▄▀█"[number % 5 :].ljust(7, "▀") * 4 for number in range(16))
WAITING = WaitedDevice("http://192.168.1.10:8080/", "483920", CODE)
JOINED = replace(WAITING, code="112233", peer=PHONE, name="Chrome 156 on Android", news="Chrome 156 has joined")
GONE = replace(JOINED, peer=None, news="The device has gone", is_problem=True)


async def put(cockpit: Any, world: Any, device: WaitedDevice) -> None:
    """Have the cockpit learn of a device."""
    world.devices.put_nowait(device)
    async with asyncio.timeout(20):
        while cockpit.app.cockpit._device is not device:
            await cockpit.pilot.pause(0.01)
    await cockpit.settle()


async def test_the_dialog_opens_by_itself_and_closes_when_a_device_joins(world: Any) -> None:
    """The device is the remote end then; its going is told, and the dialog of c has the next code."""
    world.devices = asyncio.Queue()
    async with world.cockpit(peer=AWAITED_BROWSER) as cockpit:
        assert "a device that joins" in cockpit.text()
        await put(cockpit, world, WAITING)
        assert "483 920" in cockpit.text()
        assert WAITING.link in cockpit.text()
        await put(cockpit, world, JOINED)
        assert "483 920" not in cockpit.text()
        assert str(PHONE) in cockpit.line(0)
        assert world.probed == [PHONE]
        await put(cockpit, world, GONE)
        assert "The device has gone." in notifications(cockpit)
        await cockpit.press("c")
        assert "112 233" in cockpit.text()


async def test_the_dialog_says_who_can_read_or_how_to_know_the_certificate(world: Any) -> None:
    """By plain HTTP everybody on the network can."""
    world.devices = asyncio.Queue()
    async with world.cockpit(peer=AWAITED_BROWSER) as cockpit:
        await put(cockpit, world, WAITING)
        assert "Plain HTTP" in cockpit.text()
        await put(
            cockpit, world, replace(WAITING, link="https://192.168.1.10:8080/", fingerprint="0123456789abcdef" * 4)
        )
        assert "Plain HTTP" not in cockpit.text()
        assert "0123456789abcdef" * 2 in cockpit.text()


async def test_keys_that_a_browser_lacks_say_why_and_sessions_end_at_eight(world: Any) -> None:
    """The dialog of a click has no more either."""
    world.devices = asyncio.Queue()
    async with world.cockpit(peer=AWAITED_BROWSER, plan=with_page(Plan())) as cockpit:
        await put(cockpit, world, WAITING)
        await put(cockpit, world, JOINED)
        for key, feature in (
            ("u", Feature.LOAD_PHASES),
            ("w", Feature.WORKLOADS),
            ("]", Feature.WINDOW),
            ("l", Feature.NO_PROBE),
        ):
            await cockpit.press(key)
            assert why_unavailable(PHONE, feature) in notifications(cockpit), key
        await cockpit.press(*["+"] * 9)
        assert "[8]" in cockpit.line(2)
        assert "This remote end has at most 8\xa0connections in a direction." in notifications(cockpit)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
def test_the_dialog(snap_compare: Any, world: Any, size: tuple[int, int]) -> None:
    """The whole code is on the smallest usual screen."""
    world.devices = asyncio.Queue()
    world.devices.put_nowait(WAITING)
    assert snap_compare(
        world.app(peer=AWAITED_BROWSER), terminal_size=size, run_before=before_snapshot(world, None)
    )
