"""The rate of a test against a LibreSpeed and an NDT7 server beside that of two endpoints over the same link.

Usage: .venv/bin/python bench/speed_servers.py --librespeed PROGRAM --ndt7 PROGRAM [--rates 100,500] [--rounds 1]

PROGRAM is the server of librespeed/speedtest-go and that of m-lab/ndt-server, built or installed elsewhere. For
each rate and direction one link of two namespaces with both servers and an endpoint at the far end, and on it in
turn: two endpoints, LibreSpeed, NDT7. Prints the medians, their ratio to that of two endpoints, and the first
finding. Needs root, and a quiet machine: link and both ends share its cores.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from statistics import median
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "stress"))

from browser_causes import Cause, link_of, linkgauge
from link_makers import MadeLink
from linkgauge.engine.lab.link_spec import FAR_ADDRESS
from linkgauge.engine.model.directions import Direction, End

_PRESET: Final = "gbe-fd-1500"
_LIBRESPEED_PORT: Final = 8_989
_NDT7_PORT: Final = 8_080
_START_S: Final = 10.0
_DEADLINE_S: Final = 60.0
_SETTINGS: Final = f"""bind_address = "{FAR_ADDRESS}"
listen_port = {_LIBRESPEED_PORT}
proxyprotocol_port = 0
database_type = "none"
assets_path = ""
"""


def _commands(options: argparse.Namespace, folder: Path) -> list[list[str]]:
    """Return the commands of both servers; they write into a folder."""
    (folder / "settings.toml").write_text(_SETTINGS, encoding="utf-8")
    (folder / "html").mkdir()
    others = ("-ndt5_addr", "-ndt5_ws_addr", "-ndt5_wss_addr", "-health_addr", "-prometheusx.listen-address")
    return [
        [options.librespeed, "-c", str(folder / "settings.toml")],
        [
            *(
                options.ndt7,
                "-ndt7_addr_cleartext",
                f"{FAR_ADDRESS}:{_NDT7_PORT}",
                "-ndt7_addr",
                f"{FAR_ADDRESS}:0",
            ),
            *("-datadir", str(folder), "-htmldir", str(folder / "html")),
            *(word for name in others for word in (name, f"{FAR_ADDRESS}:0")),
        ],
    ]


@contextlib.contextmanager
def _served(link: MadeLink, options: argparse.Namespace) -> Generator[None]:
    """Run both servers at the far end of a link."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        for number, command in enumerate(_commands(options, folder)):
            log = stack.enter_context((folder / f"{number}.log").open("w"))
            process = subprocess.Popen(link.command_at(End.FAR, command), stdout=log, stderr=log, cwd=folder)
            stack.callback(process.wait, _DEADLINE_S)
            stack.callback(process.kill)  # ndt-server ends late if it is asked to
        time.sleep(_START_S / 5)
        yield


def _measure(link: MadeLink, peer: str, direction: Direction, options: argparse.Namespace) -> dict[str, Any]:
    """Return the document of a test."""
    command = linkgauge(
        "check", _PRESET, peer, "--direction", direction.value, "--seconds", str(options.seconds), "--json",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LINKGAUGE_DATA_DIR": folder}
        done = subprocess.run(
            link.command_at(End.NEAR, command), capture_output=True, text=True, check=False, env=environment
        )
    if not done.stdout:
        sys.exit(f"{peer}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def compare(rate: int, direction: Direction, options: argparse.Namespace) -> None:
    """Print a row for each server over a link of a rate in Mb/s, in one direction."""
    cause = Cause(f"{rate}", (), direction=direction, preset=_PRESET, line_rate_mbit_s=rate)
    with link_of(cause, "lab") as link, _served(link, options):
        peers = {
            "linkgauge": f"{FAR_ADDRESS}:{link.peer.port}",
            "LibreSpeed": f"librespeed://{FAR_ADDRESS}:{_LIBRESPEED_PORT}",
            "NDT7": f"ndt7://{FAR_ADDRESS}:{_NDT7_PORT}",
        }
        found = {
            name: [_measure(link, peer, direction, options) for _ in range(options.rounds)]
            for name, peer in peers.items()
        }
    rates = {
        name: median(each["measured"][direction.value]["mbit_s"] for each in documents)
        for name, documents in found.items()
    }
    for name, documents in found.items():
        first = (documents[-1]["why"] or [{"code": "-"}])[0]["code"]
        ratio = rates[name] / rates["linkgauge"]
        print(f"{rate:>6} {direction.value:<4} {name:<10} {rates[name]:>9.2f} {ratio:>6.3f}  {first}", flush=True)


def main() -> None:
    """Print the rows of each rate and direction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--librespeed", required=True, help="the program of librespeed/speedtest-go")
    parser.add_argument("--ndt7", required=True, help="the program of m-lab/ndt-server")
    parser.add_argument("--rates", default="100,500")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=8)
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("the namespaces of a link are entered as root")
    print(f"{'Mb/s':>6} {'way':<4} {'far end':<10} {'Mb/s':>9} {'ratio':>6}  first finding")
    for rate in map(int, options.rates.split(",")):
        for direction in (Direction.OUT, Direction.IN):
            compare(rate, direction, options)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
