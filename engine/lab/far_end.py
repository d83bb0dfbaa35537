"""`python -m linkgauge.engine.lab.far_end ADDRESS`: the endpoint at the far end of a lab."""

import sys

from ..embedded import serve_until_stdin_ends
from ..loop import run

if __name__ == "__main__":
    run(serve_until_stdin_ends(sys.argv[1]))
