"""The facts about a machine: versions as tools print them, kernel and CPU."""

import sys

import machine
import pytest
from machine import describe_machine, installed_versions, tool_version
from tools import Tool


def printing(code: str) -> Tool:
    """Return a tool whose version is asked for by Python code."""
    return Tool("a tool", sys.executable, ("-ISc", code), lambda _port: [])


@pytest.mark.parametrize(
    ("code", "version"),
    [
        ("print('iperf 3.21 (cJSON 1.7.15)')", "3.21"),
        ("import sys; print('iperf version 2.1.8 (12 August 2022)', file=sys.stderr); sys.exit(1)", "2.1.8"),
        ("print('nuttcp-6.1.2')", "6.1.2"),
        ("print('v2.4.1-rc1 of today')", "2.4.1-rc1"),
        ("print('\\x1b[1munknown flag')", "unknown flag"),
        ("", "printed nothing"),
    ],
)
def test_a_version_is_read_from_what_a_tool_prints(code: str, version: str) -> None:
    """Wherever it prints it, and whatever its exit status is; else its words stand for it."""
    assert tool_version(printing(code)) == version


def test_a_tool_that_hangs_or_is_missing_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark goes on, and finds out by itself."""
    monkeypatch.setattr(machine, "_PATIENCE_S", 0.3)
    assert tool_version(printing("import time; time.sleep(60)")) == "printed nothing"
    missing = Tool("gone", "/nonexistent/gone", ("--version",), lambda _port: [])
    assert tool_version(missing) == "printed nothing"
    assert list(installed_versions((missing,))) == ["linkgauge"]


def test_the_machine_is_described_by_what_rates_depend_on() -> None:
    """Nothing of it is empty."""
    facts = describe_machine()
    assert list(facts) == ["kernel", "CPU", "cores", "memory", "congestion control", "Python"]
    assert all(facts.values())
