"""The machine of a benchmark: kernel, CPU, congestion control, memory, and the versions of the tools on it."""

import os
import platform
import re
import subprocess
import tempfile
from pathlib import Path

from floor import memory_copy_bit_s
from outputs import failure_words
from tools import LINKGAUGE, PEERS, Tool

_ROOT = Path(__file__).parents[1]
_CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_CPU_INFO = Path("/proc/cpuinfo")
_PATIENCE_S = 20.0
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")


def describe_machine() -> dict[str, str]:
    """Return what rates depend on: kernel, CPU, cores, memory and congestion control."""
    flags = _cpu_field("flags").split()
    cores = len(os.sched_getaffinity(0))
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "CPU": _cpu_field("model name") or platform.machine(),
        "cores": f"{cores} virtual" if "hypervisor" in flags else str(cores),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "congestion control": _read(_CONGESTION).strip() or "unknown",
        "Python": platform.python_version(),
    }


def measure_memory() -> float:
    """Return the bits a second that one core copies in memory."""
    return memory_copy_bit_s(1.0)


def installed_versions(tools: tuple[Tool, ...] = PEERS) -> dict[str, str]:
    """Return the version of linkgauge, with its commit, and those of the tools that are installed."""
    commit = _output(["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--exclude=*"]).strip()
    ours = tool_version(LINKGAUGE)
    versions = {LINKGAUGE.name: f"{ours} (commit {commit})" if commit else ours}
    return versions | {tool.name: tool_version(tool) for tool in tools if tool.path}


def tool_version(tool: Tool) -> str:
    """Return the version that a tool prints, or what it prints instead."""
    text = _output([tool.program, *tool.version_options])
    match = _VERSION.search(text)
    return match[0] if match else failure_words(text, "")


def _output(command: list[str]) -> str:
    """Return all that a command prints; nothing if it cannot run."""
    try:  # neper writes a log file where it is started
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            cwd=tempfile.gettempdir(),
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if command[0] != "git" or not done.returncode else ""


def _cpu_field(name: str) -> str:
    match = re.search(rf"^{name}\s*:\s*(.+)$", _read(_CPU_INFO), re.MULTILINE)
    return match[1] if match else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
