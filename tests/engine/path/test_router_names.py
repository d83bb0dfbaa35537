"""Names of addresses by the system's resolver: those that it knows, within a deadline."""

import socket
import time

import pytest
from linkgauge.engine.path import router_names
from linkgauge.engine.path.router_names import look_up_names


async def test_addresses_with_a_name_have_it_and_others_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver of a test machine knows no router: it is the test's own."""

    def look_up(address: tuple[str, int], _flags: int) -> tuple[str, str]:
        if address[0] == "192.0.2.1":
            return "gw.example" + "." * 400, "0"
        raise socket.gaierror(socket.EAI_NONAME, "no name")

    monkeypatch.setattr(socket, "getnameinfo", look_up)
    names = await look_up_names({"192.0.2.1", "192.0.2.2"})
    assert set(names) == {"192.0.2.1"}
    assert len(names["192.0.2.1"]) == 255
    assert await look_up_names(set()) == {}


async def test_a_resolver_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread is abandoned."""
    monkeypatch.setattr(socket, "getnameinfo", lambda *_: time.sleep(1))
    monkeypatch.setattr(router_names, "_DEADLINE_S", 0.01)
    assert await look_up_names({"192.0.2.1"}) == {}
