"""Several iperf3 clients at once, as one client; and as many iperf3 servers, as one server.

Usage:
    many_clients.py serve PORT COUNT                          starts `iperf3 -s` on each of so many ports
    many_clients.py ask PORT COUNT SECONDS one|each [OPTION…] prints the bits a second of all clients together

A server of iperf3 serves one test at a time: its clients need one each, on the next ports. With `one` all clients
ask the same port. They begin together; the sum is that of their own rates.
"""

import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack

from outputs import OutputError, failure_words, iperf3_rate, read_rate

_HOST = "127.0.0.1"
_PATIENCE_S = 15.0
_IPERF3 = shutil.which("iperf3") or "iperf3"


def serve(port: int, count: int) -> None:
    """Serve on so many ports until a signal ends this process; the servers end with it."""
    commands = [[_IPERF3, "-s", "-p", str(port + number)] for number in range(count)]
    signal.signal(signal.SIGTERM, _leave)
    with ExitStack() as stack:
        servers = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.DEVNULL)) for command in commands
        ]
        try:
            servers[0].wait()
        finally:
            for server in servers:
                server.terminate()


def _leave(_number: int, _frame: object) -> None:
    sys.exit(0)


def ask(port: int, count: int, seconds: int, options: list[str], *, has_one_port: bool) -> float:
    """Return the bits a second of so many clients. Raises OutputError if one of them fails."""
    ports = [port if has_one_port else port + number for number in range(count)]
    clients = [
        subprocess.Popen(
            [_IPERF3, "-c", _HOST, "-p", str(each), "-J", "-t", str(seconds), *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in ports
    ]
    try:
        outputs = [client.communicate(timeout=seconds + _PATIENCE_S)[0] for client in clients]
    finally:
        for client in clients:
            client.kill()
    return sum(read_rate(iperf3_rate, output) for output in outputs)


def main(arguments: list[str]) -> int:
    """Carry out a command line; return the exit status."""
    match arguments:
        case ["serve", port, count]:
            serve(int(port), int(count))
        case ["ask", port, count, seconds, "one" | "each" as ports, *options]:
            try:
                rate = ask(int(port), int(count), int(seconds), options, has_one_port=ports == "one")
            except (OutputError, subprocess.TimeoutExpired) as error:
                print(failure_words("", str(error)), file=sys.stderr)
                return 1
            print(rate)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
