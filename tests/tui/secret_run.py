"""A stored run with known addresses, names and texts, for tests that look for them where they must not be."""

from collections.abc import Iterable
from dataclasses import replace

from linkgauge.engine.model.events import Started
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.run_log import RunLog

from .app_driver import ScriptedServices
from .scripted_run import FAR, NEAR, store_run

RUN_ID = "20261123-091200-s2s3"
SECRETS = ("db-77", "example.net", "web-55", "10.77.", "192.0.2.", "fd77:", "02:00:5e", "alice", "bob")


def store_secret_run(world: ScriptedServices, log: RunLog) -> None:
    """Store the run. Its ends are the hosts web-55 and db-77."""
    script = world.script_of(world.catalog.find("10gbe-fd-1500"), Plan(duration_ns=10 * SECOND_NS))
    script.run_for(40, 5.5e9)
    script.end()
    events = [script.queue.get_nowait() for _ in range(script.queue.qsize())]
    for event in events:
        script.queue.put_nowait(_named(event) if isinstance(event, Started) else event)
    label = "db-77 10.77.0.9 fd77::9"
    store_run(log, RUN_ID, script, peer="ssh://alice@db-77.example.net:2222", label=label)
    log.set_note(RUN_ID, "db-77 to 192.0.2.9, 02:00:5e:10:00:01, see /home/bob/notes")


def _named(started: Started) -> Started:
    near, far = replace(NEAR, hostname="web-55"), replace(FAR, hostname="db-77")
    return replace(started, peer="ssh://alice@db-77.example.net:2222", address="10.77.0.2", near=near, far=far)


def secrets_in(text: str, names: Iterable[str] = SECRETS) -> list[str]:
    """Return what of the run is in a text."""
    return [name for name in names if name in text]
