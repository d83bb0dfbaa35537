"""The metrics of an endpoint: its status at the moment of a scrape."""

from linkgauge.engine.far.status import ClientStatus, EndpointStatus, EndpointTotals, RunStatus
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.plan import Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.metrics.endpoint_metrics import EndpointMetrics

TOTALS = EndpointTotals(
    5,
    {"completed": 3, "failed": 1},
    {"clients": 7, "dropped": 2},
    received_bytes=1_000,
    sent_bytes=50,
    probes=9,
    clients_by_key={"": 1, "alice": 2, "removed": 2},
)


def status(*received: int | None, totals: EndpointTotals = TOTALS) -> EndpointStatus:
    """Return a status with a client for each number of bytes; None stands for a client without a run."""
    clients = tuple(
        ClientStatus(
            number,
            f"192.0.2.{number}",
            f"web-{number}",
            0,
            None if count is None else RunStatus(Workload.STREAM, Settings(), None, 0, count, count // 10),
        )
        for number, count in enumerate(received, 1)
    )
    return EndpointStatus(0, clients, 2, Limits(), totals=totals, key_names=("alice", "bob"))


def values_of(metrics: EndpointMetrics) -> dict[tuple[str, ...], float]:
    """Return each reading's value by its name, without the prefix, and its labels."""
    return {
        (each.family.name.removeprefix("linkgauge_endpoint_"), *each.labels): each.value for each in metrics.read()
    }


def test_clients_are_counted_and_never_named() -> None:
    """With a label for each address there would be a series for each client that ever came."""
    values = values_of(EndpointMetrics(lambda: status(100, None, 900)))
    assert {key: values[key,] for key in ("clients", "runs", "pending_connections", "draining")} == {
        "clients": 3,
        "runs": 2,
        "pending_connections": 2,
        "draining": 0,
    }
    assert values["probes_total",] == 9
    assert (values["ended_runs_total", "completed"], values["ended_runs_total", "stopped"]) == (3, 0)
    assert (values["rejections_total", "clients"], values["rejections_total", "dropped"]) == (7, 2)
    assert not [key for key in values if "192.0.2" in "".join(key) or "web-" in "".join(key)]


def test_admitted_clients_are_counted_by_the_names_of_the_keys_in_force() -> None:
    """One that nobody has used yet is there with 0, and one that was removed ends its series."""
    values = values_of(EndpointMetrics(status))
    admitted = {key[1]: value for key, value in values.items() if key[0] == "admitted_clients_total"}
    assert admitted == {"": 1, "alice": 2, "bob": 0}


def test_bytes_include_ended_and_current_runs_and_never_fall() -> None:
    """Even if a run breaks off before its end is logged."""
    now = status(200)
    metrics = EndpointMetrics(lambda: now)
    assert values_of(metrics)["received_bytes_total",] == 1_200
    now = status(None)
    values = values_of(metrics)
    assert (values["received_bytes_total",], values["sent_bytes_total",]) == (1_200, 70)
