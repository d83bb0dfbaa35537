"""The load of a program's busiest thread, by real processes."""

import os
import subprocess
import sys
import time

from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.observe.thread_loads import ThreadLoad, ThreadLoads

from ..engine.tcp_pair import only_linux

pytestmark = only_linux
DEADLINE_S = 30.0


def test_a_thread_that_computes_has_a_load_and_one_that_waits_has_none() -> None:
    """The first measurement has nothing to compare with."""
    code = "import threading\nthreading.Thread(target=input, daemon=True).start()\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as busy:
        loads = ThreadLoads()
        assert loads.measure([busy.pid, os.getppid()], time.monotonic_ns()) == {}
        deadline = time.monotonic() + DEADLINE_S
        found: dict[int, ThreadLoad] = {}
        while (busy.pid not in found or found[busy.pid].running < 0.2) and time.monotonic() < deadline:
            time.sleep(0.1)
            found = loads.measure([busy.pid, os.getppid()], time.monotonic_ns())
        busy.kill()
    assert found[busy.pid].running > found[os.getppid()].running


def test_a_process_that_has_ended_has_no_load() -> None:
    """Nor does one that is measured for the first time have one."""
    loads = ThreadLoads()
    assert loads.measure([os.getpid(), 4_194_303], 0) == {}
    assert set(loads.measure([os.getpid(), 4_194_303], SECOND_NS)) == {os.getpid()}
