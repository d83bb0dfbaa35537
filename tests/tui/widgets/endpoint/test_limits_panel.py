"""The limits of an endpoint: each has a line, with its present use where it is known."""

from linkgauge.engine.model.limits import Limits
from linkgauge.tui.state.endpoint import EndpointInfo, EndpointSnapshot
from linkgauge.tui.widgets.endpoint.limits_panel import LimitsPanel
from textual.widgets import Static

from .endpoint_values import CLIENTS, WidgetApp

INFO = EndpointInfo("db-02", "port 5820", "asks for its key", "linkgauge check auto db-02")


async def test_each_limit_has_its_value_and_its_use() -> None:
    """Two clients, of which one has a run with five sessions."""
    app = WidgetApp(LimitsPanel())
    limits = Limits(deny=("10.0.0.0/8", "192.168.0.0/16"))
    async with app.run_test(size=(60, 30)) as pilot:
        app.widget.show(EndpointSnapshot(INFO, clients=CLIENTS, received_bit_s=941e6, limits=limits))
        await pilot.pause()
        text = str(app.widget.query_one(Static).render()).replace("\u00a0", " ")
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in text.splitlines()}
    assert set(lines) == set(limits.values())
    assert lines["clients"].startswith("2 / ")
    assert lines["clients_per_address"].startswith("1 / ")
    assert lines["sessions"].startswith("5 / ")
    assert lines["duration_s"].startswith("9 / ")
    assert lines["deny"] == "10.0.0.0/8, 192.168.0.0/16"
