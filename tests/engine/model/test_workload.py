"""Workloads: one object for each name, and a registry that refuses a name twice."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.engine.model.workload import Workload, all_workloads, register_workload, workload_named


@pytest.mark.parametrize("workload", all_workloads())
def test_each_name_has_a_single_object(workload: Workload) -> None:
    """Copies and pickles included, so that `is` compares two."""
    assert workload_named(str(workload)) is workload
    assert copy.deepcopy(workload) is workload
    assert pickle.loads(pickle.dumps(workload)) is workload  # noqa: S301 - made here


def test_an_unknown_name_is_an_error_that_lists_all() -> None:
    """In the order in which they were registered."""
    with pytest.raises(ValueError, match="one of stream, rr, crr, fetch"):
        workload_named("telepathy")


@pytest.mark.parametrize("name", ["", "Echo", "1st", "a b", "a" * 17, "écho"])
def test_a_name_that_cannot_be_typed_as_an_option_is_refused(name: str) -> None:
    """Small letters, digits and dashes are allowed."""
    with pytest.raises(ValueError, match="not the name of a workload"):
        Workload(name)


def test_a_name_is_registered_once() -> None:
    """A second workload of the name would carry other bytes under it."""
    with pytest.raises(ValueError, match="there is a workload rr already"):
        register_workload(Workload("rr", response_bytes=1))
    assert workload_named("rr") is Workload.RR


def test_modules_of_the_environment_register_theirs(tmp_path: Path) -> None:
    """Their names are found without another import."""
    module = tmp_path / "echo_workload.py"
    module.write_text(
        "from linkgauge.engine.model.workload import Workload, register_workload\n"
        "register_workload(Workload('echo', request_bytes=1, response_bytes=1))\n"
    )
    script = (
        f"import os, sys; sys.path.append({str(tmp_path)!r}); os.environ['LINKGAUGE_WORKLOADS'] = 'echo_workload'\n"
        "from linkgauge.engine.model.workload import workload_named\n"
        "print(workload_named('echo').transaction_sizes)"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert output.stdout == "(1, 1)\n"
