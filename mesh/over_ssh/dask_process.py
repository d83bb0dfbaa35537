"""`python -m linkgauge.mesh.over_ssh.dask_process`: a scheduler or worker of Dask on a host that ssh reaches.

It reads its order as a line of JSON from standard input (`ssh_process` writes it). So the cluster's private key is
neither in a command line, which others on the host could read, nor in the environment, nor in a file that would
stay there. The process ends with its standard input, and so with the ssh session, however the command ended.
"""

import json
import os
import signal
import sys
import threading
import time
from typing import Final

_MAX_ORDER: Final = 1_000_000
_END_S: Final = 5.0  # for Dask, to end in order


def main() -> None:
    """Carry out the order: `config` for Dask, the `spec` of the process, and its `arguments`."""
    from dask import config
    from distributed.cli.dask_spec import main as run_spec

    order = json.loads(sys.stdin.readline(_MAX_ORDER))
    threading.Thread(target=_end_with_session, daemon=True).start()
    config.set(order["config"])
    run_spec([*order["arguments"], "--spec", json.dumps(order["spec"])], prog_name="linkgauge")


def _end_with_session() -> None:
    """End this process with its standard input: a worker would wait for a scheduler for ever."""
    while os.read(sys.stdin.fileno(), 4_096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_END_S)
    os._exit(1)


if __name__ == "__main__":
    main()
