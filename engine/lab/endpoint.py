"""`python -m linkgauge.engine.lab.endpoint ADDRESS`: the endpoint at the far end of a lab."""

import sys

from ..far.loopback import serve_until_stdin_ends
from ..host.debug_log import configure_debug_log
from ..host.event_loop import run

if __name__ == "__main__":
    configure_debug_log(has_stderr=False)
    run(serve_until_stdin_ends(sys.argv[1]))
