"""The file of a watch: TOML with a table `[watch]`, one `[[peer]]` for each peer, and `[notify]`.

Values are written as on the command line: `seconds = 10`, `every = "1h"`, `rate = "100M"`. `[watch.defaults]` has
keys for every peer. `packaging/watch.example.toml` shows all of it. Keys and passwords do not belong into the file:
they come from the same place as those of every peer (credentials.py).

With a `[[host]]` for each of several hosts, all of them have the same file, and each tests the others: a mesh that
needs no coordinator.

Every error names the file, the place (`peer[2].every` is in the second `[[peer]]`), the problem and the remedy.
"""

import difflib
import re
import socket
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

from ....engine.model.directions import Direction
from ....engine.model.errors import PlanError, UnknownPreset, UsageError, explain_os_error, make_printable
from ....engine.model.ip_address import IpVersion
from ....engine.model.peer import Peer
from ....engine.model.plan import SECOND_NS, Mode, Plan, Settings, SocketOptions
from ....engine.model.serialization import read_toml
from ....engine.model.workload import Workload, all_workloads, workload_named
from ....engine.results.responsiveness.plan import with_path, with_responsiveness
from ....presets.auto_select import AUTO
from ....presets.catalog import Catalog
from ....presets.expectation import check_variant
from ....presets.verdict import AcceptanceLimits
from ....presets.wire import Variant
from ....watch.watch_plan import Notify, NotifyFormat, Timing, WatchedPeer, WatchPlan
from ...readings.setting_steps import check_options_used
from ...words import parsing
from ...words.redaction import REDACTION

MAX_FILE_BYTES: Final = 1 << 20
_MOST_SHOWN: Final = 60  # characters of a wrong value
_MOST_NAMED: Final = 8
_NONE: Final = "none"
_SECRETS: Final = ("key", "password", "secret", "token", "fingerprint")
_SIZE_REMEDY: Final = 'give a size such as "500M" or "50G"'


def _name(text: str) -> str:
    return text


def _preset(text: str) -> str | None:
    return None if text == _NONE else text


def _time(least: str) -> Callable[[str], int]:
    return lambda text: parsing.time_ns(text, "", f'give a time such as "{least}", "10m" or "24h"')


def _probe_every(text: str) -> int | None:
    return None if text == _NONE else _time("30s")(text)


def _share(text: str) -> float:
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise PlanError("", repr(text), 'give a share of the period such as 0.1 or "10%"') from None


def _budget(text: str) -> int:
    try:
        return parsing.message_bytes(text, "")
    except PlanError as error:
        raise PlanError("", error.value, _SIZE_REMEDY) from None


def _workload(text: str) -> Workload:
    try:
        return workload_named(text)
    except ValueError:
        raise PlanError("", repr(text), f"give {', '.join(all_workloads())}") from None


def _quiet(text: str) -> tuple[int, int]:
    """Return the minutes of the day of two times, as in 22:00-07:00."""
    times = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)", text, re.ASCII)
    if times is None:
        raise PlanError("", repr(text), "give two times of this host's day such as 22:00-07:00")
    hours = [int(each) for each in times.groups()]
    return 60 * hours[0] + hours[1], 60 * hours[2] + hours[3]


def _choice(kind: type[Direction] | type[Mode] | type[NotifyFormat]) -> Callable[[str], Any]:
    def parse(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise PlanError("", repr(text), f"give {', '.join(kind)}") from None

    return parse


def _rate(text: str) -> int | None:
    return None if text == "max" else parsing.rate_bit_s(text)


def _integer(remedy: str) -> Callable[[str], int]:
    return lambda text: parsing.integer(text, "", remedy)


def _ip_version(text: str) -> IpVersion:
    if text not in {"4", "6"}:
        raise PlanError("", text, "give 4 or 6")
    return 4 if text == "4" else 6


_Parser = Callable[[str], Any]


# The parser of each key's text. A number in the file is text as well; only `bool` is not.
_OPTIONS: Final[Mapping[str, _Parser]] = {
    "preset": _preset,
    "pass": parsing.pass_percent,
    "every": _time("30s"),
    "probe_every": _probe_every,
    "jitter": _share,
    "retests": _integer("give 0 to 10"),
    "retest_after": _time("30s"),
    "budget": _budget,
    "max_loss": parsing.loss_limit,
    "min_rate": parsing.minimum_rate_bit_s,
    "max_rise": parsing.rise_ns,
    "path": bool,
    "shared": bool,
    "seconds": parsing.duration_ns,
    "warmup": lambda text: None if text == "auto" else parsing.time_ns(text, "", "give auto, or seconds such as 1"),
    "workload": _workload,
    "direction": _choice(Direction),
    "sessions": parsing.sessions,
    "window": parsing.window_bytes,
    "rate": _rate,
    "bytes": parsing.bytes_limit,
    "datagram": parsing.datagram_bytes,
    "request": lambda text: parsing.message_bytes(text, ""),
    "response": lambda text: parsing.message_bytes(text, ""),
    "burst": _integer("give 1 to 1024 requests"),
    "mode": _choice(Mode),
    "workers": _integer("give 1 to 64"),
    "congestion": _name,
    "mss": _integer("give bytes, such as 1448"),
    "dscp": _integer("give 0 to 63 (RFC 2474)"),
    "nodelay": bool,
    "ip": _ip_version,
    "source": _name,
    "device": _name,
    "line_rate": parsing.line_rate_bit_s,
    "mtu": parsing.mtu_bytes,
    "ipv6": bool,
    "vlan": _integer("give 0, 1 or 2 (QinQ)"),
    "tunnel": parsing.tunnel,
    "timestamps": bool,
}
_PEER: Final[Mapping[str, _Parser]] = {"name": _name, "address": parsing.peer, **_OPTIONS}
_NOTIFY: Final[Mapping[str, _Parser]] = {
    "webhook": _name,
    "format": _choice(NotifyFormat),
    "headers_file": _name,
    "repeat": _time("1m"),
    "quiet": _quiet,
}
_DEFAULTS: Final = "watch.defaults"
# Fields of a plan whose key in the file is not their name.
_KEYS: Final = {
    "congestion control": "congestion",
    "DSCP": "dscp",
    "duration": "seconds",
    "MSS": "mss",
    "VLAN tags": "vlan",
    "warm-up": "warmup",
}
_WATCH: Final[Mapping[str, _Parser]] = {"name": _name, "budget": _budget}


def read_watch_file(path: Path, presets: Catalog | None = None, here: str | None = None) -> WatchPlan:
    """Return the watch that a file describes.

    Args:
        path: the file.
        presets: the known presets; None leaves the names of presets unchecked.
        here: this host in a file of hosts; None finds it by the name that the host has.

    Raises:
        PlanError, UsageError, UnknownPreset: the file cannot be read, or a value of it is wrong.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: {explain_os_error(error)}") from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB; is it the file of a watch?")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text; is it the file of a watch?") from error
    return parse_watch(text, path, presets, here)


def parse_watch(text: str, path: Path, presets: Catalog | None = None, here: str | None = None) -> WatchPlan:
    """Return the watch that a text describes. Without a name it takes the file's, which errors name too.

    Raises as `read_watch_file` does.
    """
    try:
        document = read_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {make_printable(str(error))}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: a number or a nesting in it is too large") from error
    return _WatchReader(str(path), presets, here).read(document, path.name.removesuffix(".toml"))


class _WatchReader:
    """Reads one document. `_file` begins every error."""

    def __init__(self, file: str, presets: Catalog | None, here: str | None) -> None:
        self._file = file
        self._presets = presets
        self._here = here

    def read(self, document: dict[str, Any], file_name: str) -> WatchPlan:
        self._check_keys(document, "", ("watch", "host", "peer", "notify"))
        watch = dict(self._table(document.get("watch", {}), "watch"))
        defaults = self._values(watch.pop("defaults", {}), _DEFAULTS, _OPTIONS)
        own = self._values(watch, "watch", _WATCH, also=("defaults",))
        hosts, peers = (self._peers(document.get(kind, []), kind, defaults) for kind in ("host", "peer"))
        if hosts or self._here is not None:
            peers = self._pairs(hosts, peers)
        if not peers:
            text = "no [[peer]]; give one for each peer, with an address, or a [[host]] for each of several hosts"
            raise UsageError(f"{self._file}: {text}")
        notify = self._notify(document.get("notify", {}))
        return self._made(
            "", lambda: WatchPlan(own.get("name", file_name), tuple(peers), notify, own.get("budget"))
        )

    def _peers(self, tables: object, kind: str, defaults: dict[str, Any]) -> list[WatchedPeer]:
        """Return the peers of all tables `[[peer]]`, or `[[host]]`."""
        if not isinstance(tables, list):
            raise PlanError(f"{self._file}: {kind}", _shown(tables), f"give tables: [[{kind}]]")
        return [
            self._peer(self._values(table, place, _PEER), defaults, place)
            for number, table in enumerate(cast("list[object]", tables), 1)
            for place in (f"{kind}[{number}]",)
        ]

    def _pairs(self, hosts: list[WatchedPeer], peers: list[WatchedPeer]) -> list[WatchedPeer]:
        """Return the pairs that this host tests: with each other host, and with each peer.

        A pair has a name of its own, so that its messages and due times are not those of another host's test.
        """
        names, hostname = [host.name for host in hosts], socket.gethostname()
        here = self._here or next((name for name in names if name in {hostname, hostname.partition(".")[0]}), None)
        if here not in names:
            known = ", ".join(names[:_MOST_NAMED]) or "none"
            raise UsageError(
                f"{self._file}: {here or f'this host, {hostname},'} is not a [[host]] of it; name one of them with"
                f" --host: {known}{', …' if len(names) > _MOST_NAMED else ''}"
            )
        own = next(host.peer for host in hosts if host.name == here)
        others = [host for host in hosts if host.name != here]
        named = ((each, f"{here}_to_{each.name}") for each in (*others, *peers))
        return [self._made("host ", partial(replace, each, name=name, own=own)) for each, name in named]

    def _peer(self, values: dict[str, Any], defaults: dict[str, Any], place: str) -> WatchedPeer:
        if "address" not in values:
            raise UsageError(f'{self._file}: {place} has no address; give address = "HOST" or "HOST:PORT"')
        merged, inherited = {**defaults, **values}, defaults.keys() - values.keys()
        address: Peer = self._made(f"{place}.", lambda: values["address"].over_ip(merged.get("ip")), inherited)
        name = merged.get("name", address.host)
        REDACTION.learn_host(address.host, name)
        preset = merged.get("preset", AUTO)
        variant: Variant = self._made(f"{place}.", lambda: _variant(merged), inherited)
        if self._presets is not None and preset not in {None, AUTO}:
            self._check_preset(self._presets, preset, variant, place)
        limits = AcceptanceLimits(merged.get("max_loss"), merged.get("min_rate"), merged.get("max_rise"))
        known = WatchedPeer.__dataclass_fields__
        return self._made(
            f"{place}.",
            lambda: WatchedPeer(
                name,
                address,
                _plan(merged),
                preset,
                merged.get("pass", known["pass_percent"].default),
                _timing(merged),
                merged.get("budget"),
                variant,
                limits,
                merged.get("shared", False),
                None,
                socket.gethostname(),
            ),
            inherited,
        )

    def _check_preset(self, presets: Catalog, preset: str, variant: Variant, place: str) -> None:
        try:
            found = presets.find(preset)
        except UnknownPreset as error:
            raise UsageError(f"{self._file}: {place}.preset: {error}") from error
        self._made(f"{place}.", lambda: check_variant(found, variant))

    def _notify(self, table: object) -> Notify:
        values = dict(self._table(table, "notify"))
        command = self._words(
            values, "exec", 'a program and its arguments: exec = ["/usr/local/bin/tell", "--all"]'
        )
        email = self._words(values, "email", 'a list of addresses: email = ["ops@example.net"]')
        parsed = self._values(values, "notify", _NOTIFY, also=("exec", "email"))
        repeat_ns = parsed.pop("repeat", None)
        return self._made("notify.", lambda: Notify(command, email=email, repeat_ns=repeat_ns, **parsed))

    def _words(self, values: dict[str, Any], key: str, wanted: str) -> tuple[str, ...]:
        """Take a list of texts out of `[notify]`."""
        if key not in values:
            return ()
        shown, value = _shown(values[key]), values.pop(key)
        words = cast("list[object]", value) if isinstance(value, list) else [None]
        texts = tuple(word for word in words if isinstance(word, str))
        if len(texts) < len(words) or not any(texts[:1]):
            raise PlanError(f"{self._file}: notify.{key}", shown, f"give {wanted}")
        return texts

    def _values(
        self, table: object, place: str, parsers: Mapping[str, _Parser], also: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return the parsed values of a table, by key."""
        members = self._table(table, place)
        self._check_keys(members, place, (*parsers, *also))
        return {key: self._value(value, f"{place}.{key}", parsers[key]) for key, value in members.items()}

    def _value(self, value: object, place: str, parse: _Parser) -> Any:
        if parse is bool:
            if isinstance(value, bool):
                return value
            raise PlanError(f"{self._file}: {place}", _shown(value), "give true or false")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise PlanError(f"{self._file}: {place}", _shown(value), "give a text or a number")
        text = value if isinstance(value, str) else f"{value:.15g}" if isinstance(value, float) else str(value)
        try:
            return parse(text)
        except PlanError as error:
            raise PlanError(f"{self._file}: {place}", error.value[:_MOST_SHOWN], error.allowed) from error

    def _table(self, value: object, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise PlanError(f"{self._file}: {place}", _shown(value), f"give a table: [{place}]")
        return cast("dict[str, Any]", value)

    def _check_keys(self, table: Mapping[str, Any], place: str, known: tuple[str, ...]) -> None:
        for key in table:
            if key in known:
                continue
            where = f"{self._file}: {place}{'.' if place else ''}{make_printable(key[:40])}"
            if any(word in key.lower() for word in _SECRETS):
                raise UsageError(
                    f"{where}: keys and passwords do not belong into this file; put a line `PEER KEY` into the file"
                    " `keys` of the configuration directory, which only you may read"
                )
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
            raise UsageError(f"{where} is not known; {hint}")

    def _made(self, place: str, make: Callable[[], Any], defaults: Collection[str] = ()) -> Any:
        """Return the result of `make`. A PlanError of its checks gets the file and the place.

        `defaults` are the keys whose value is that of `[watch.defaults]`.
        """
        try:
            return make()
        except PlanError as error:
            # Remedies name options of the command line. Here the same words are keys.
            allowed = error.allowed.replace("--", "")
            key = _KEYS.get(error.field, error.field)
            where = f"{self._file}: {_DEFAULTS}." if key in defaults else f"{self._file}: {place}"
            raise PlanError(f"{where}{key}", error.value[:_MOST_SHOWN], allowed) from error


def _plan(values: Mapping[str, Any]) -> Plan:
    """Return the plan of each test; raise PlanError."""
    workload: Workload = values.get("workload", Workload.STREAM)
    rate = values.get("rate")
    if workload.is_datagram and "rate" not in values:
        raise PlanError("rate", "none", 'datagrams need a rate; give one such as "100M", or "max"')
    direction = values.get("direction", Direction.OUT)
    settings = Settings(
        direction,
        values.get("sessions", 1),
        values.get("window"),
        rate if workload.is_datagram else None,
        values.get("datagram"),
    )
    options = {key: values[key] for key in ("congestion", "dscp", "nodelay", "source", "device") if key in values}
    if values.get("max_rise") is not None and workload is not Workload.STREAM:
        raise PlanError("max_rise", f"with {workload}", "it is for TCP streams; leave it out")
    plan = Plan(
        settings,
        workload,
        values.get("seconds", 10 * SECOND_NS),
        warmup_ns=values.get("warmup"),
        warmup_auto="warmup" in values and values["warmup"] is None,
        mode=values.get("mode"),
        socket=SocketOptions(mss_bytes=values.get("mss"), **options),
        workers=values.get("workers"),
        request_bytes=values.get("request"),
        response_bytes=values.get("response"),
        burst=values.get("burst", 1),
        rate_bit_s=None if workload.is_datagram else rate,
        bytes_limit=values.get("bytes"),
    )
    check_options_used(plan)
    if values.get("path"):
        if workload is not Workload.STREAM:
            raise PlanError("path", f"with {workload}", "only a TCP stream loads the path; leave it out")
        return with_path(plan)
    return plan if values.get("max_rise") is None else with_responsiveness(plan)


def _variant(values: Mapping[str, Any]) -> Variant:
    """Return the link options of a peer; raise PlanError."""
    return Variant(
        ip=6 if values.get("ipv6") else 4,
        timestamps=values.get("timestamps"),
        vlan_tags=values.get("vlan", 0),
        tunnel=values.get("tunnel"),
        line_rate_bit_s=values.get("line_rate"),
        mtu_bytes=values.get("mtu"),
    )


def _timing(values: Mapping[str, Any]) -> Timing:
    names = {
        "every": "check_every_ns",
        "probe_every": "probe_every_ns",
        "jitter": "jitter",
        "retests": "retests",
        "retest_after": "retest_after_ns",
    }
    return Timing(**{field: values[key] for key, field in names.items() if key in values})


def _shown(value: object) -> str:
    """Return a value as an error shows it, in a few characters."""
    return repr(value)[:_MOST_SHOWN]
