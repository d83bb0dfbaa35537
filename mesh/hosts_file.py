"""The hosts of a mesh from a file, one a line: `NAME [GROUP]`. `#` begins a comment. Pure."""

from collections.abc import Iterable

from ..engine.model.errors import PlanError, UsageError
from .plan import MAX_HOSTS, MIN_HOSTS, Host


def parse_hosts_file(text: str, name: str) -> tuple[Host, ...]:
    """Return the hosts of a file's text; raise PlanError or UsageError with its `name` and the wrong line."""
    hosts: dict[str, Host] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{name}, line {number}:"
        if len(words) > 2:
            raise PlanError(where, repr(" ".join(words))[:80], "give NAME, or NAME GROUP")
        try:
            host = Host(*words)
        except PlanError as error:
            raise PlanError(f"{where} {error.field}", error.value, error.allowed) from None
        if host.name in hosts:
            raise PlanError(where, repr(host.name), "give each host once")
        hosts[host.name] = host
        if len(hosts) > MAX_HOSTS:
            raise UsageError(f"{where} a mesh has at most {MAX_HOSTS} hosts")
    if len(hosts) < MIN_HOSTS:
        count = f"{len(hosts) or 'no'} host{'' if len(hosts) == 1 else 's'}"
        raise UsageError(f"{name} has {count}, and a mesh needs {MIN_HOSTS}; give one a line: NAME, or NAME GROUP")
    return tuple(hosts.values())


def add_groups(hosts: Iterable[Host], grouped: Iterable[Host]) -> tuple[Host, ...]:
    """Return hosts with the groups of the hosts of the same name in `grouped`."""
    groups = {host.name: host.group for host in grouped}
    return tuple(Host(host.name, groups.get(host.name, host.group), host.address) for host in hosts)
