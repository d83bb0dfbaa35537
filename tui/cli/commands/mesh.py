"""`linkgauge mesh`: every pair of many hosts measured, and the slow hosts and paths named."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....engine.model.errors import PlanError, UsageError, explain_os_error, require_extra
from ....engine.model.plan import Plan, Settings
from ....engine.model.workload import Workload
from ....mesh.plan import Host, MeshMode, MeshPlan, cell_interval_ns, check_port
from ...words import parsing
from ..click_extension.option_fields import argument, flag, group, option
from ..latency_options import LimitOptions
from ..link_options import LinkOptions
from ..output import keep_log_off_screen, print_stderr
from ..output_options import SeriesOutputOptions, headless_flag
from ..web.browser_page import has_screen

if TYPE_CHECKING:
    from ....presets.catalog import Catalog
    from ...mesh.mesh_spec import EmulatedHosts, MeshSpec

_HOSTS: Final = "Hosts"
_RUNS: Final = "Each test"
_ORDER: Final = "Order"
_WORKLOADS: Final = ("stream", "udp", "rr")
_SCHEDULER: Final = re.compile(r"(tcp|tls)://\S+:\d{1,5}", re.ASCII)
_DEFAULT_SECONDS: Final = "3"
_LAB_PRESET: Final = "100mb-fd"
_NO_PRESET: Final = "none"
_MAX_FILE_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Where the hosts of a mesh come from."""

    hosts_file: Path | None = option(
        _HOSTS,
        "Hosts from a file: a line for each, NAME [GROUP].",
        "--hosts",
        brief="Hosts from a file: a line for each, NAME [GROUP].",
        metavar="FILE",
    )
    scheduler: str | None = option(
        _HOSTS,
        "Dask scheduler whose workers are the hosts; with HOST or --hosts, only these.",
        brief="Dask scheduler whose workers are the hosts.",
        metavar="tcp://ADDRESS:PORT",
    )
    local: int | None = option(
        _HOSTS,
        "Emulate N hosts on this machine, to try a mesh.",
        brief="Emulate N hosts on this machine, to try a mesh.",
        metavar="N",
    )
    racks: int | None = option(_HOSTS, "Put the emulated hosts into N racks.", metavar="N", shown="1")
    slow: tuple[str, ...] = option(
        _HOSTS,
        "Give an emulated host or rack half of its rate: host-2, rack-1; repeatable.",
        default=(),
        metavar="NAME",
    )
    remote_python: str | None = option(
        _HOSTS, "Path of Python on hosts that ssh reaches.", metavar="PATH", shown="the path of this one"
    )
    port: int = option(
        _HOSTS,
        "Port of the hosts' endpoints, TCP and UDP, for firewalls.",
        default=0,
        metavar="PORT",
        shown="a free one",
    )
    resume: str | None = option(
        _HOSTS,
        "Continue an interrupted mesh, or show a complete one.",
        brief="Continue an interrupted mesh, or show a complete one.",
        metavar="GROUP",
    )
    emulated: str | None = option(
        _HOSTS,
        "The hosts that are emulated already, as --local N gives them to the command that it starts.",
        metavar="JSON",
        hidden=True,
    )

    @property
    def has_hosts(self) -> bool:
        """Whether any host is named or described, beside the scheduler's."""
        return bool(self.slow or self.port) or any(
            each is not None for each in (self.hosts_file, self.local, self.racks, self.remote_python)
        )

    @property
    def arguments(self) -> list[str]:
        """The options of the command on emulated hosts, as words of a command line."""
        if self.resume is not None:
            return ["--resume", self.resume]
        return ["--port", str(self.port)] if self.port else []

    def emulate(self, preset: str) -> "EmulatedHosts | None":
        """Return the hosts to emulate, for `none` with the links of the usual preset; None for real hosts.

        Raises PlanError for the JSON of another program.
        """
        from ....engine.lab.hosts_spec import MAX_LAB_HOSTS, MIN_LAB_HOSTS
        from ...mesh.mesh_spec import EmulatedHosts

        if self.emulated is not None:
            return EmulatedHosts.from_json(self.emulated)
        if self.local is None:
            return None
        if not MIN_LAB_HOSTS <= self.local <= MAX_LAB_HOSTS:
            raise PlanError("--local", self.local, f"give {MIN_LAB_HOSTS} to {MAX_LAB_HOSTS}")
        link = _LAB_PRESET if preset == _NO_PRESET else preset
        return EmulatedHosts(link, self.local, 1 if self.racks is None else self.racks, self.slow)

    def read(self, words: tuple[str, ...]) -> tuple[Host, ...]:
        """Return the hosts that are named; none if all workers of a scheduler are meant.

        Raises UsageError if there are no hosts or two sources of them, and PlanError for a wrong name.
        """
        from ....mesh.hosts_file import parse_hosts_file

        if words and self.hosts_file is not None:
            raise UsageError("give hosts as arguments or with --hosts, not both")
        if self.local is not None and (words or self.hosts_file is not None or self.scheduler is not None):
            raise UsageError("--local makes its own hosts; give no others with it")
        if self.local is None and (self.racks is not None or self.slow):
            raise UsageError("--racks and --slow are for emulated hosts; give --local N as well")
        if self.remote_python is not None and (self.local is not None or self.scheduler is not None):
            raise UsageError("--remote-python is for hosts that ssh reaches; the workers run already")
        check_port(self.port)
        if self.scheduler is not None and not _SCHEDULER.fullmatch(self.scheduler):
            raise PlanError(
                "scheduler", repr(self.scheduler), "give tcp://ADDRESS:PORT, as dask scheduler prints it"
            )
        if self.hosts_file is not None:
            return parse_hosts_file(_read_text(self.hosts_file), str(self.hosts_file))
        if words:
            return tuple(map(Host, words))
        if self.scheduler is None and self.local is None:
            raise UsageError(
                "give the hosts: HOST HOST ..., --hosts FILE, --scheduler tcp://ADDRESS:PORT or --local N"
            )
        return ()


@dataclass(frozen=True, slots=True)
class MeshOptions:
    """What a mesh measures, and in which order."""

    seconds: str = option(
        _RUNS,
        "Duration of each test.",
        "-t",
        brief="Duration of each test. [3]",
        default=_DEFAULT_SECONDS,
        metavar="TIME",
    )
    workload: Workload = option(
        _RUNS,
        "What each pair does: a TCP stream, UDP datagrams, or requests and answers.",
        brief="Stream, datagrams, or requests. [stream]",
        default=Workload.STREAM,
        choices=_WORKLOADS,
    )
    sessions: str = option(
        _RUNS,
        "TCP connections, or UDP flows, 1 to 128.",
        "-P",
        brief="TCP connections, or UDP flows. [1]",
        default="1",
        metavar="N",
    )
    rate: str | None = option(
        _RUNS,
        "Limit each test to this rate: 100M, 2.5G.",
        "-b",
        brief="Limit each test to this rate: 100M, 2.5G.",
        metavar="RATE",
        shown="no limit; with udp the preset's",
    )
    preset: str | None = option(
        _RUNS,
        "Preset of the expected rate; auto: by the interfaces of both hosts; none: no expected rate.",
        brief="Preset of the expected rate. [auto]",
        metavar="auto|none|ID",
        shown="auto",
    )
    mode: MeshMode = option(
        _ORDER,
        "rounds: each host has one test at a time; isolated: one pair at a time; all: all hosts at once.",
        brief="rounds, one pair at a time, or all at once. [rounds]",
        default=MeshMode.ROUNDS,
    )
    seed: int = option(
        _ORDER, "Seed of the order of pairs; the same seed gives the same order.", default=1, metavar="N", shown=""
    )
    link: LinkOptions = group(LinkOptions)
    limits: LimitOptions = group(LimitOptions)

    def to_spec(self, catalog: "Catalog", hosts: tuple[Host, ...], source: HostOptions) -> "MeshSpec":
        """Return the mesh to measure. Raises PlanError, UsageError or UnknownPreset for a wrong value."""
        from ....presets.auto_select import AUTO
        from ...mesh.mesh_spec import MeshSpec, new_mesh_name
        from ...session.preferences import read_pass_mark
        from ...session.run_spec import Judging, find_preset
        from ...session.storage import config_dir

        preset = None if self.preset == _NO_PRESET else self.preset or AUTO
        variant = self.link.to_variant()
        Judging(find_preset(preset, catalog), variant).check_link_options()
        duration_ns = parsing.duration_ns(self.seconds)
        if duration_ns is None:
            raise PlanError("duration", "none", "each test of a mesh needs an end; give seconds such as 3")
        limits = self.limits.to_limits(self.workload)
        base = self.limits.apply_to(self._base(duration_ns))
        return MeshSpec(
            MeshPlan(new_mesh_name(), hosts, base, self.mode, self.seed, preset, source.port, limits),
            source.scheduler,
            source.remote_python,
            variant,
            pass_percent=read_pass_mark(config_dir(), print_stderr),
            emulated=source.emulate(self.preset or AUTO),
        )

    def _base(self, duration_ns: int) -> Plan:
        """Return the plan of each test; datagrams without a rate get one for each pair when the mesh begins."""
        sessions = parsing.sessions(self.sessions)
        rate = None if self.rate is None else parsing.rate_bit_s(self.rate)
        settings, total = Settings(sessions=sessions), rate
        if self.workload.is_datagram:
            settings, total = Settings(sessions=sessions, rate_bit_s=rate), None
        return Plan(
            settings, self.workload, duration_ns, interval_ns=cell_interval_ns(duration_ns), rate_bit_s=total
        )

    @property
    def arguments(self) -> list[str]:
        """The same options as words of a command line, without the preset."""
        words = ["--seconds", self.seconds, "--workload", str(self.workload), "--sessions", self.sessions]
        words += [] if self.rate is None else ["--rate", self.rate]
        words += [*self.link.arguments, *self.limits.arguments]
        return [] if not self.has_changes else [*words, "--mode", self.mode.value, "--seed", str(self.seed)]

    @property
    def has_changes(self) -> bool:
        """Whether anything is given that a stored mesh has already."""
        return self != MeshOptions()


@dataclass(frozen=True, slots=True)
class MeshCommandOptions:
    """A mesh: its hosts, what it measures, and where the result goes."""

    hosts: tuple[str, ...] = argument("[HOST ...]", "Hosts that ssh reaches, as it names them.", default=())
    source: HostOptions = group(HostOptions)
    check: bool = flag(
        _HOSTS,
        "Try ssh, Python, versions and ports of all hosts, without a test.",
        brief="Try ssh, Python, versions and ports, without a test.",
    )
    mesh: MeshOptions = group(MeshOptions)
    output: SeriesOutputOptions = group(SeriesOutputOptions)
    headless: bool = headless_flag()


def mesh(options: MeshCommandOptions) -> int:
    """Test every pair of many hosts in both directions, and name the slow hosts and paths.

    The hosts measure each other; this machine only coordinates, by Dask: pip install 'linkgauge[mesh]' here and
    there. Rounds of disjoint pairs keep each host at one test at a time, so that N hosts take about 8 s x N. Slow
    pairs are measured again alone. Ctrl-C saves the results so far; --resume continues. --check only tries whether
    all hosts can be used.
    """
    from ....presets.auto_select import AUTO
    from ...session.user_presets import load_presets
    from ..runners.mesh_runner import MeshJob, is_over, run_mesh

    source, output, measured, hosts = options.source, options.output, options.mesh, options.hosts
    if options.check and (output.csv is not None or output.report is not None):
        raise UsageError("--check has no rows and no page; leave out --csv and --report, or --check")
    outputs, catalog, is_resumed = output.to_outputs(), load_presets(print_stderr), source.resume is not None
    if source.local is not None and measured.preset in {None, AUTO}:
        measured = replace(measured, preset=_LAB_PRESET)
    if is_resumed:
        spec = _resumed(source, measured, hosts)
    else:
        spec = measured.to_spec(catalog, source.read(hosts), source)
    require_extra("a mesh needs Dask", "mesh", "distributed", "cryptography")
    is_measured = is_resumed and not options.check and is_over(spec)
    if spec.emulated is not None and source.scheduler is None and not is_measured:
        from ..runners.local_mesh import run_local_mesh

        headless = ["--headless"] if options.headless else []
        checked = ["--check"] if options.check else []
        further = [*source.arguments, *measured.arguments, *output.arguments, *headless, *checked]
        return run_local_mesh(catalog, spec.emulated, measured.preset or _NO_PRESET, further)
    if options.check:
        from ..runners.mesh_checker import run_mesh_check

        return run_mesh_check(spec, outputs)
    is_for_others = outputs.is_for_programs or outputs.csv or outputs.report
    is_screen = not (options.headless or is_for_others) and has_screen()
    if is_screen:
        from ...app.look import read_look

        read_look()  # before anything is started
        keep_log_off_screen()
    return run_mesh(MeshJob(spec, catalog, outputs, is_resumed=is_resumed, has_screen=is_screen))


def _resumed(source: HostOptions, options: MeshOptions, words: tuple[str, ...]) -> "MeshSpec":
    """Return the stored mesh that is to be continued, on the scheduler that is given, if any."""
    from ...mesh.stored_mesh import find_mesh

    if words or source.has_hosts or options.has_changes:
        raise UsageError("--resume continues a mesh with its own hosts and settings; give no others with it")
    spec = find_mesh(source.resume or "")
    return spec if source.scheduler is None else replace(spec, scheduler=source.scheduler)


def _read_text(path: Path) -> str:
    """Return the text of a hosts file. Raises PlanError if it cannot be read."""
    try:
        with path.open(encoding="utf-8") as stream:
            return stream.read(_MAX_FILE_BYTES)
    except OSError as error:
        raise PlanError("hosts file", path, explain_os_error(error)) from error
    except UnicodeDecodeError as error:
        raise PlanError("hosts file", path, "it is not text in UTF-8") from error
