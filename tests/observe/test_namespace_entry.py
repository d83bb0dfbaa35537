"""Network namespaces of names and processes."""

import os
import subprocess
import sys

import pytest
from linkgauge.engine.model.errors import LinkgaugeError, PlanError, UsageError
from linkgauge.observe.namespace_entry import enter_namespace

from ..end_to_end.namespaces import Namespaces
from ..engine.tcp_pair import only_linux

pytestmark = only_linux


def test_without_a_name_nothing_happens_and_bad_names_are_refused() -> None:
    """A name is no path."""
    enter_namespace(None, None)
    for name in ("../self/ns/net", "a b", "."):
        with pytest.raises(PlanError, match="ip netns list"):
            enter_namespace(name, None)
    with pytest.raises(UsageError, match="two namespaces"):
        enter_namespace("a", 1)


def test_a_namespace_that_does_not_exist_is_told() -> None:
    """By the name that was given."""
    with pytest.raises(LinkgaugeError, match="namespace linkgauge-none does not exist"):
        enter_namespace("linkgauge-none", None)
    with pytest.raises(LinkgaugeError, match="process 4194303 does not exist"):
        enter_namespace(None, 4_194_303)


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces of others need root")
def test_the_namespace_of_a_process_is_entered() -> None:
    """In a process of its own: this one stays where it is."""
    namespaces = Namespaces(1)
    try:
        code = (
            "import os, sys; from linkgauge.observe.namespace_entry import enter_namespace; "
            "enter_namespace(None, int(sys.argv[1])); print(os.stat('/proc/self/ns/net').st_ino)"
        )
        pid = namespaces.pids[0]
        done = subprocess.run([sys.executable, "-c", code, pid], capture_output=True, text=True, check=True)
        wanted = os.stat(f"/proc/{pid}/ns/net").st_ino  # noqa: PTH116
    finally:
        namespaces.close()
    assert int(done.stdout) == wanted
