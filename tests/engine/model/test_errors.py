"""Errors: one tree in one module, drawn at its top."""

import errno
import importlib
import pkgutil
import re
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import linkgauge
import pytest
from linkgauge.engine.model import errors
from linkgauge.engine.model.errors import (
    ExtraMissing,
    LinkgaugeError,
    explain_extra,
    explain_os_error,
    require_extra,
)

ROOT = Path(linkgauge.__file__).parent
PACKAGES = ("engine", "mesh", "metrics", "presets", "tui", "watch")


def subclasses(base: type[Exception]) -> Iterator[type[Exception]]:
    """Yield all classes below one."""
    for each in base.__subclasses__():
        yield each
        yield from subclasses(each)


def test_no_other_module_defines_a_public_error() -> None:
    """The one module has every error."""
    for package in PACKAGES:
        path = f"{linkgauge.__path__[0]}/{package}"
        for module in pkgutil.walk_packages([path], f"linkgauge.{package}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    elsewhere = {
        f"{error.__module__}.{error.__qualname__}"
        for error in subclasses(LinkgaugeError)
        if error.__module__ != errors.__name__
        and error.__module__.startswith("linkgauge.")
        and not error.__name__.startswith("_")
    }
    assert elsewhere == set()


def test_the_tree_is_drawn_as_it_is() -> None:
    """Each class stands below its base, four columns further in."""
    bases: list[str] = []
    drawn: set[tuple[str, str]] = set()
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"(LinkgaugeError$|[│├└─ ]+(?=[A-Z]))(\w*)", line)
        if match is None or line.startswith(" "):
            continue
        depth = len(match[1]) // 4 if match[2] else 0
        bases[depth:] = [match[2] or match[1]]
        if depth:
            drawn.add((bases[depth - 1], match[2]))
    defined = {
        (error.__bases__[0].__name__, error.__name__)
        for error in subclasses(LinkgaugeError)
        if error.__module__ == errors.__name__
    }
    assert drawn == defined


def test_an_unknown_preset_comes_with_the_nearest_ones() -> None:
    """A slip of the finger is not worth a look at the list."""
    error = errors.UnknownPreset("gbe-fd-150", ["gbe-fd-1500", "gbe-fd-9000", "atm-155"])
    assert error.nearest[0] == "gbe-fd-1500"
    assert "did you mean gbe-fd-1500" in str(error)
    assert str(errors.UnknownPreset("?", ["atm-155"])).endswith("see linkgauge presets list")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('', 5999)"), "connection refused"),
        (OSError(errno.ENODEV, "No such device"), "no such device"),
        (OSError("the name has no address"), "the name has no address"),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            "a name does not resolve to an address (temporary failure in name resolution)",
        ),
        (ConnectionResetError(), "connection lost"),
        (OSError(), "unknown error"),
    ],
)
def test_an_error_of_the_system_is_explained_without_its_number_and_arguments(error: OSError, text: str) -> None:
    """The event loop puts an address into its text, as a Python value."""
    assert explain_os_error(error) == text


def test_a_missing_package_is_named_with_the_command_that_installs_its_extra() -> None:
    """Only the missing package is named."""
    with pytest.raises(ExtraMissing) as raised:
        require_extra("a mesh needs Dask", "mesh", "json", "no_such_package", "nor_this_one")
    assert str(raised.value).startswith("a mesh needs Dask (no_such_package and nor_this_one missing here): ")


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/me/.local/share/pipx/venvs/linkgauge", f"pipx install --force '{ROOT}[mesh]'"),
        ("/home/me/.local/share/uv/tools/linkgauge", f"uv tool install --force '{ROOT}[mesh]'"),
        (sys.prefix, f"{sys.executable} -m pip install -e '{ROOT}[mesh]'"),  # a clone, as that of these tests
    ],
)
def test_the_command_that_installs_an_extra_is_that_of_this_copy(
    monkeypatch: pytest.MonkeyPatch, prefix: str, command: str
) -> None:
    """With another one the packages would be installed where this copy does not look."""
    monkeypatch.setattr(sys, "prefix", prefix)
    assert explain_extra("a mesh needs Dask", "mesh") == f"a mesh needs Dask: {command}"


def test_an_extra_that_is_installed_needs_nothing() -> None:
    """Its packages are searched for, and none is imported."""
    require_extra("a test needs json", "json", "json")


def test_a_failure_of_tls_is_not_named_by_openssls_number() -> None:
    """Number 1 would be "operation not permitted"."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    incoming = ssl.MemoryBIO()
    incoming.write(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises(ssl.SSLError) as raised:
        context.wrap_bio(incoming, ssl.MemoryBIO(), server_side=True).do_handshake()
    assert explain_os_error(raised.value) == "TLS failed (http request)"
