"""Fixtures of the tests of a mesh's hosts: an endpoint and its key."""

from collections.abc import AsyncIterator

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.shared_key import SharedKey


@pytest.fixture
def key() -> SharedKey:
    """Give a mesh's key."""
    return SharedKey.generate()


@pytest.fixture
async def endpoint(key: SharedKey) -> AsyncIterator[Endpoint]:
    """Give an endpoint in this process, on an address of loopback that is not the usual one."""
    async with Endpoint(listen("127.0.0.3", 0), keys=[key]) as endpoint:
        yield endpoint
