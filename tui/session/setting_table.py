"""The settings: one table for the keys of `settings.toml`, their variables, and the options of these defaults.

The command line makes its options of these rows. The template, `linkgauge settings`, the manual page and
docs/settings.md say what is here. Every value is parsed from text, as typed.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ...engine.model.errors import PlanError
from ...engine.model.ip_address import IpVersion
from ...engine.model.plan import Plan, Settings
from ..words import parsing
from ..words.numbers import RateUnit

PREFIX: Final = "LINKGAUGE_"
THEMES: Final = {
    "textual-dark": "dark",
    "textual-light": "light",
    "monochrome": "monochrome",
    "terminal": "of the terminal",
    **{
        name: name
        for name in (
            "nord", "gruvbox", "dracula", "tokyo-night", "monokai", "catppuccin-mocha", "catppuccin-latte",
            "solarized-dark", "solarized-light", "rose-pine", "rose-pine-dawn", "atom-one-dark", "atom-one-light",
        )
    },
}  # fmt: skip
OWN_THEME: Final = "own"
"""The theme of the colours in the table `theme`."""
INTERVAL_REMEDY: Final = "give a time such as 0.25 or 100ms (0.05 s to 10 s)"
_ANY: Final = "any"
_FAMILIES: Final[dict[str, IpVersion | None]] = {"4": 4, "6": 6, _ANY: None}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the user.

    Attributes:
        name: The key in the file. The variable is LINKGAUGE_ and this name in capitals.
        help: What it is, as a sentence.
        parse: Returns the value of a text; raises PlanError, which says what is allowed.
        example: The value that the template has.
        default: The value without it, as text; None if each command has its own.
        shown: The default as texts for the user name it; None for `default` itself.
        option: The option whose default it is, as typed; "" for a setting of the app.
        short: The short spelling of the option.
        metavar: The placeholder of the option's value.
        brief: The option's line in the short help.
        commands: The commands whose option has this default.
        yields_to: Parameters that the setting gives way to if they are typed: they exclude each other.
    """

    name: str
    help: str
    parse: Callable[[str], Any]
    example: str
    default: str | None = None
    shown: str | None = None
    option: str = ""
    short: str = ""
    metavar: str = ""
    brief: str = ""
    commands: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable of the setting."""
        return PREFIX + self.name.upper()

    @property
    def usual(self) -> str:
        """The default as texts for the user name it."""
        return self.default or "" if self.shown is None else self.shown


def _theme(text: str) -> str:
    if text not in {*THEMES, OWN_THEME}:
        raise PlanError("theme", repr(text)[:60], f"give one of {', '.join(THEMES)}, or colours in [theme]")
    return text


def _units(text: str) -> RateUnit:
    if text not in list(RateUnit):
        raise PlanError("units", repr(text)[:60], f"give {' or '.join(RateUnit)}")
    return RateUnit(text)


def family(text: str) -> IpVersion | None:
    """Parse an IP version: `4`, `6`, or `any` (None)."""
    if text not in _FAMILIES:
        raise PlanError("family", repr(text)[:60], "give 4, 6 or any")
    return _FAMILIES[text]


def _preset(text: str) -> str:
    """Return the id of a preset, or `auto`. The catalog is read only if the user has set one."""
    from ...presets.auto_select import AUTO
    from .user_presets import load_presets

    return text if text == AUTO else load_presets().find(text).id


def _seconds(text: str) -> int | None:
    return Plan(duration_ns=parsing.duration_ns(text)).duration_ns


def _sessions(text: str) -> int:
    return Settings(sessions=parsing.sessions(text)).sessions


def _window(text: str) -> int | None:
    return Settings(window_bytes=parsing.window_bytes(text)).window_bytes


def _interval(text: str) -> int:
    return Plan(interval_ns=parsing.time_ns(text, "interval", INTERVAL_REMEDY)).interval_ns


def _file(text: str) -> str:
    if not text or _CONTROL.search(text):
        raise PlanError("file", repr(text), "give the path of a file")
    return text


def _address(text: str) -> str:
    if not text or _CONTROL.search(text):
        raise PlanError("address", repr(text), "give an address of this host")
    return text


_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_TESTS: Final = ("app", "check", "run", "watch")
_PEERS: Final = (*_TESTS, "respond", "sweep", "mtu")

SETTINGS: Final = {
    row.name: row
    for row in (
        Setting(
            "preset", "Preset to compare with.", _preset, '"10gbe-fd-1500"', shown="auto",
            brief="Preset to compare with. [auto]",
            option="--preset", metavar="ID", commands=("app", "check", "watch"),
        ),
        Setting(
            "seconds", "Duration: 10, 1.5, 2m, or none to test until Ctrl-C.", _seconds, "20",
            shown="10; in the app 30", brief="Duration: 10, 2m, or none for no end.",
            option="--seconds", short="-t", metavar="TIME", commands=_TESTS,
            yields_to=("until_ci", "bytes_"),
        ),
        Setting(
            "sessions", "TCP connections, or UDP flows, in each direction, 1 to 128.", _sessions, "4",
            default="1", brief="TCP connections, or UDP flows. [1]",
            option="--sessions", short="-P", metavar="N", commands=_TESTS,
        ),
        Setting(
            "window", "Socket buffers: auto, or a size such as 56K or 1M.", _window, '"1M"',
            default="auto", brief="Socket buffers: auto, 56K, 1M. [auto]",
            option="--window", short="-w", metavar="SIZE", commands=_TESTS,
        ),
        Setting(
            "interval", "Time between samples, 50ms to 10; run and check print a line each time.", _interval,
            "0.5",
            shown="0.25; lines 1, on a terminal", brief="Interval of samples and lines: 1, 0.5, 100ms.",
            option="--interval", short="-i", metavar="TIME", commands=_TESTS,
        ),
        Setting(
            "family", "IP version of connections: 4, 6 or any.", family, "6",
            default=_ANY, option="--family", metavar="4|6|any", commands=_PEERS, yields_to=("version4", "version6"),
        ),
        Setting(
            "key_file",
            "File with the key of the remote host; only you may read it. "
            "Without it: LINKGAUGE_KEY, or your keys file.",
            _file, '"/home/you/linkgauge.key"', brief="Key of the remote host. [LINKGAUGE_KEY]",
            option="--key-file", metavar="FILE", commands=_PEERS,
        ),
        Setting(
            "bind", "Address to listen on.", _address, '"192.0.2.10"', shown="every address",
            brief="Address to listen on. [every address]",
            option="--bind", metavar="ADDRESS", commands=("endpoint",), yields_to=("stdio",),
        ),
        Setting(
            "endpoint_key_file",
            "File with the key that clients need, or with a line of NAME KEY for each; only you may read it. "
            "SIGHUP reads it again. Without it: LINKGAUGE_KEY, endpoint-keys in the configuration directory, or a "
            "new key, which is printed on a terminal, and otherwise saved in a file.",
            _file, '"/etc/linkgauge/key"', brief="Key that clients need. [LINKGAUGE_KEY, or a new one]",
            option="--key-file", metavar="FILE", commands=("endpoint",),
            yields_to=("open_", "stdio"),
        ),
        Setting(
            "pass_mark", "Percent of the expected rate that is a pass.", parsing.pass_percent, "90",
            default="95", brief="Percent of the expected rate that is a pass. [95]",
            option="--pass-mark", metavar="PERCENT", commands=("check", "run"),
        ),
        Setting("theme", f"Theme of the app: {', '.join(THEMES)}.", _theme, '"nord"', default="textual-dark"),
        Setting("units", "Unit of gauges and plots: Mb/s or MiB/s.", _units, '"MiB/s"', default="Mb/s"),
        Setting(
            "refresh_hz",
            f"Frames of the app a second, {parsing.MIN_REFRESH_HZ:g} to {parsing.MAX_REFRESH_HZ:g}.",
            parsing.refresh_hz, "10", default=f"{parsing.DEFAULT_REFRESH_HZ:g}",
        ),
        Setting(
            "thin_after", "Age from which runs keep one sample a second: 30d, 12w, or never.", parsing.thin_after,
            '"30d"', default=parsing.NEVER,
        ),
    )
}  # fmt: skip
