"""Fuzzing of every decoder: whatever somebody else wrote, the worst result is an error that says so.

Usage: .venv/bin/python stress/fuzz.py [--inputs 200000] [--seed 1] [--only KIND,KIND] [--again KIND:NUMBER]

In turn: whole conversations, mutated as bytes and cut anywhere, for the state machine of either end, with and
without a key; single messages, mutated as JSON values; and valid inputs of each decoder of decoders_of_*.py,
mutated as bytes and as text. An input follows from its kind, its number and the seed alone. One process for
each core. Prints inputs a second, what came of them, and each distinct fault with its first input, which is
also written to stress/results/fuzz; --again feeds one input once more, with its traceback. Exits with 1 after a
fault.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import copy
import json
import multiprocessing
import os
import random
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent))

from decoders import BrokenPromise, Decoder, shared_folder
from decoders_of_files import FILE_DECODERS
from decoders_of_iperf3 import IPERF3_DECODERS
from decoders_of_speed_servers import SPEED_SERVER_DECODERS
from decoders_of_wire import WIRE_DECODERS
from linkgauge.engine.model.counters.path_trace import HopTrace, MtuReport, PathTrace
from linkgauge.engine.model.counters.samples import CoreTimes, LatencyCounts, Sample, SessionSample
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import LinkgaugeError, RemoteProtocolError
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.serialization import encode_tagged
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.protocol.framing import MAX_FRAME_BYTES, compress, decode_body, decompress, encode_frame
from linkgauge.engine.protocol.messages import (
    Begun,
    Challenge,
    Change,
    Finish,
    Hello,
    Introduction,
    Message,
    Notice,
    Open,
    Ping,
    Pong,
    Proof,
    Ready,
    Refuse,
    Report,
    SessionClosed,
    SessionOpened,
    Start,
    Stop,
    Traced,
    Welcome,
)
from linkgauge.engine.protocol.preamble import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    PREAMBLE_BYTES,
    DataHello,
    decode_preamble,
    encode_preamble,
)
from linkgauge.engine.protocol.state_machine import TRANSITIONS, ControlState, ControlStateMachine

_HOST: Final = HostInfo("web-07", "Linux", 2, "linkgauge", "uvloop", NicInfo("eth0", "device", "x", 10**9))
_END: Final = RunEnd(Reason.STOPPED, "enough")
_SESSION: Final = SessionSample(Direction.IN, 1, 2_000, 0, 200, 14_480, 1_448, 1, 0, 0, 2, 5, 9)
_SAMPLE: Final = Sample(
    End.FAR, 0, 9, 9, (_SESSION,), (CoreTimes(1, 1, 1, 1, 1),) * 2, 5, (LatencyCounts(Direction.IN, (3,), (2,)),)
)
_HOP: Final = HopTrace(("192.0.2.1",), (4, 4), (4, 0), (180_000, None))
_TRACE: Final = PathTrace(End.FAR, 1, 400_000_000, (_HOP, _HOP), True, (4, 4), (MtuReport("192.0.2.1", 1_400),))
_GRANTED: Final = SocketInfo(End.FAR, Direction.OUT, 1, "cubic", None, 1_448, True, True, True)

SAYINGS: Final[dict[End, tuple[Message, ...]]] = {
    End.NEAR: (
        Hello(),
        Introduction(_HOST),
        Open(Plan(Settings(Direction.DUPLEX, 5, 65_536), Workload.RR, burst=4)),
        Start(),
        Proof("cd" * 32),
        Change(Settings(Direction.IN), 1, 1),
        Stop(_END),
        Ping(1),
        Pong(2),
    ),
    End.FAR: (
        Welcome(),
        Introduction(_HOST),
        Refuse("busy"),
        Ready("ab" * 16),
        SessionOpened(_GRANTED),
        Begun(),
        Report(_SAMPLE),
        Challenge("ef" * 32),
        SessionClosed(Direction.OUT, 1, 0, "closed"),
        Notice("a word"),
        Traced(_TRACE),
        Finish(_END),
        Ping(1),
        Pong(2),
    ),
}
_TREES: Final = {
    (end, number): json.dumps(encode_tagged(message))
    for end, messages in SAYINGS.items()
    for number, message in enumerate(messages)
}
_ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, float("nan"), float("inf")),
    *(
        "",
        "near",
        "far",
        "in",
        "out",
        "copy",
        "x" * 5_000,
        "\ud800",
        "\x1b[2J\u202e",
        [],
        {},
        [[]],
        {"type": "Ping"},
    ),
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return bytes with a few of them changed, removed, inserted or doubled."""
    result = bytearray(data)
    for _ in range(chance.choice((0, 1, 1, 2, 5))):
        at, to = sorted((chance.randrange(len(result) + 1), chance.randrange(len(result) + 1)))
        piece = chance.choice(
            (
                chance.randbytes(chance.randrange(1, 9)),
                struct.pack(">I", chance.choice((0, 1, 96, 2**14, 2**14 + 1, 2**18 + 1, 2**32 - 1))),
                bytes(result[at:to]) * 2,
                b"",
            )
        )
        result[at : min(to, at + chance.choice((0, 1, 4, 10**6)))] = piece
    return bytes(result)


def talk(end: End, chance: random.Random) -> bytes:
    """Return a preamble and random messages of an end, in any order."""
    frames = [encode_frame(chance.choice(SAYINGS[end])) for _ in range(chance.randrange(6))]
    return encode_preamble(CONTROL_KIND) + b"".join(frames)


def standing(end: End, state: ControlState) -> ControlStateMachine:
    """Return a state machine after the preamble, in a given state."""
    machine = ControlStateMachine(end)
    machine.receive_data(encode_preamble(CONTROL_KIND))
    machine.data_to_send()
    machine.state = state
    return machine


def hear(machine: ControlStateMachine, data: bytes, chance: random.Random) -> str:
    """Feed a state machine with bytes, cut anywhere; return the result. Raises BrokenPromise."""
    speaker = machine.end.other
    while data:
        cut = chance.choice((1, 7, 100, len(data)))
        machine.receive_data(data[:cut])
        data = data[cut:]
        for message in machine.messages_received():
            if type(message) not in {type(known) for known in SAYINGS[speaker]}:
                raise BrokenPromise(f"{message} is nothing that the {speaker} end says")
        buffered = len(machine._frames._buffer)
        if machine.error is None and buffered > MAX_FRAME_BYTES[speaker] + 4:
            raise BrokenPromise("more is kept than a message may have")
    machine.receive_eof()
    if machine.error is None:
        return f"{machine.end} end heard it all"
    if not isinstance(machine.error, LinkgaugeError) or not str(machine.error).isprintable():
        raise BrokenPromise(f"{machine.error!r}")
    before = (machine.state, machine.error, machine.data_to_send())
    machine.receive_data(talk(speaker, chance))
    if (machine.state, machine.error) != before[:2] or machine.data_to_send() or machine.messages_received():
        raise BrokenPromise("something is heard after an error")
    return f"{machine.end} end: {type(machine.error).__name__}"


def conversation(chance: random.Random) -> str:
    """Feed a mutated conversation to either end."""
    end = chance.choice(list(End))
    data = mutated(talk(end.other, chance), chance)
    if chance.random() < 0.3:
        return hear(ControlStateMachine(end), data, chance)
    return hear(standing(end, chance.choice(list(TRANSITIONS))), data[PREAMBLE_BYTES:], chance)


def message(chance: random.Random) -> str:
    """Decode a message with some JSON values replaced."""
    (sender, _), text = chance.choice(list(_TREES.items()))
    tree = json.loads(text)
    for _ in range(chance.choice((1, 1, 2))):
        place = tree
        key = chance.choice(list(place))
        while isinstance(place[key], dict | list) and place[key] and chance.random() < 0.8:
            place = place[key]
            key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if isinstance(place, dict) and chance.random() < 0.2:
            place[chance.choice(("x", "\x1b", "in", "type"))] = place.pop(key)
        else:
            place[key] = copy.deepcopy(chance.choice(_ODD))
    body = json.dumps(tree).encode()
    if chance.random() < 0.3:
        body = compress(body)
    try:
        decoded = decode_body(body, sender)
    except RemoteProtocolError as error:
        if not str(error).isprintable() or len(str(error)) > 1_000:
            raise BrokenPromise(f"{error}") from error
        return f"{sender} end's message: refused"
    if decode_body(encode_frame(decoded)[4:], sender) != decoded:
        raise BrokenPromise(f"{decoded} is another one once it is sent on")
    return f"{sender} end's message: read"


def bytes_alone(chance: random.Random) -> str:
    """Feed arbitrary bytes to a reader of something else than messages."""
    which = chance.randrange(3)
    if which == 0:
        kind = decode_preamble(
            mutated(encode_preamble(CONTROL_KIND), chance)[:PREAMBLE_BYTES].ljust(PREAMBLE_BYTES)
        )
        return f"preamble: {'none' if kind is None else 'one'}"
    try:
        if which == 1:
            DataHello.unpack(chance.randbytes(DATA_HELLO_BYTES))
            return "data connection: read"
        whole = decompress(mutated(compress(chance.choice(list(_TREES.values())).encode()), chance), 1_000)
        if len(whole) > 1_000 and whole.startswith(b"z"):
            raise BrokenPromise("more was unpacked than the limit")
    except RemoteProtocolError:
        return f"{'data connection' if which == 1 else 'squeezed message'}: refused"
    return "squeezed message: read"


def coded_conversation(chance: random.Random) -> str:
    """Change the bytes between two ends with a key: each hears the beginning of what the other has said."""
    near, far = ControlStateMachine(End.NEAR), ControlStateMachine(End.FAR)

    def pass_on(sender: ControlStateMachine, receiver: ControlStateMachine, *messages: Message) -> None:
        for message in messages:
            sender.send(message)
        receiver.receive_data(sender.data_to_send())
        if receiver.error is not None:
            raise BrokenPromise(f"an honest conversation failed: {receiver.error}")

    pass_on(near, far, Hello("ab" * 32))
    pass_on(far, near, Challenge("ef" * 32))
    near.authenticate_frames(b"shared")
    pass_on(near, far, Proof("cd" * 32))
    far.authenticate_frames(b"shared")
    pass_on(far, near, Welcome("cd" * 32), Introduction(_HOST))
    pass_on(near, far, Introduction(_HOST))
    sent_messages: list[Message] = [Ping(number) for number in range(chance.randrange(5))]
    sender, receiver = (near, far) if chance.random() < 0.5 else (far, near)
    for message in sent_messages:
        sender.send(message)
    receiver.messages_received()
    receiver.receive_data(mutated(sender.data_to_send(), chance))
    received_messages = receiver.messages_received()
    if received_messages != sent_messages[: len(received_messages)]:
        raise BrokenPromise(f"{received_messages} was received, {sent_messages} was sent")
    error = "" if receiver.error is None else ", then an error"
    return f"{len(received_messages)} of {len(sent_messages)} received{error}"


_EDGES: Final = (
    "0",
    "-1",
    "1",
    "65535",
    "65536",
    "2147483648",
    "18446744073709551616",
    "1e999",
    "nan",
    "9" * 5_000,
)
_PIECES: Final = (
    "\0",
    "\x1b[2J",
    "\u202e",
    "\ud800",
    "\ufeff",
    "é",
    "\U0001f600",
    "\r\n",
    "'",
    '"',
    "[",
    "{",
    "=",
    "#",
    "%",
)


def varied_text(data: bytes, chance: random.Random) -> bytes:
    """Return text with a number at an edge, deep nesting, a repeated line, or characters that belong nowhere."""
    text = data.decode("utf-8", errors="replace")
    way = chance.randrange(5)
    at = chance.randrange(len(text) + 1)
    if way == 0:
        digits = [place for place, letter in enumerate(text) if letter.isdigit()]
        at = chance.choice(digits) if digits else at
        text = text[:at] + chance.choice(_EDGES) + text[at + 1 :]
    elif way == 1:
        text = text[:at] + chance.choice(("[", "{", '{"a":', "a.", "(")) * chance.choice((3, 60, 5_000)) + text[at:]
    elif way == 2:
        lines = text.splitlines(keepends=True)
        text += chance.choice(lines) if lines else ""
    elif way == 3:
        text = text[:at] + chance.choice(_PIECES) * chance.choice((1, 1, 300)) + text[at:]
    else:
        end = min(len(text), at + chance.choice((1, 5, 50)))
        text = text[:at] + text[end:]
    return text.encode("utf-8", errors="surrogatepass")


def varied(decoder: Decoder, chance: random.Random) -> bytes:
    """Return an input for a decoder: a valid one, cut, joined with another, or changed."""
    data = chance.choice(decoder.valid)
    if chance.random() < 0.1:
        other = chance.choice(decoder.valid)
        data = data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]
    if decoder.is_text and chance.random() < 0.6:
        for _ in range(chance.choice((1, 1, 3))):
            data = varied_text(data, chance)
        return data
    if data and chance.random() < 0.3:
        flipped = bytearray(data)
        for _ in range(chance.choice((1, 1, 8))):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        return bytes(flipped)
    return mutated(data, chance)


def decoding(decoder: Decoder, chance: random.Random) -> str:
    """Feed a decoder: it returns, or raises an error of its own with a text for a person."""
    data = varied(decoder, chance)
    try:
        return f"{decoder.name}: {decoder.decode(data)}"
    except LinkgaugeError as error:
        if not str(error).isprintable():
            raise BrokenPromise(f"an error that cannot be printed: {str(error)!r}") from error
        return f"{decoder.name}: {type(error).__name__}"


_DECODERS: Final = (*IPERF3_DECODERS, *SPEED_SERVER_DECODERS, *WIRE_DECODERS, *FILE_DECODERS)
KINDS: Final[dict[str, Callable[[random.Random], str]]] = {
    "conversation": conversation,
    "coded conversation": coded_conversation,
    "message": message,
    "bytes": bytes_alone,
    **{decoder.name: partial(decoding, decoder) for decoder in _DECODERS},
}
_CHUNK: Final = 500
_FAILURES: Final = Path(__file__).parent / "results" / "fuzz"


@dataclass
class Findings:
    """What came of some inputs; `faults` has the first input of each distinct fault, by its place in the code."""

    results: Counter[str] = field(default_factory=Counter)
    faults: dict[str, tuple[str, int, str]] = field(default_factory=dict)
    fault_counts: Counter[str] = field(default_factory=Counter)
    milliseconds: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Findings") -> None:
        """Add what came of other inputs."""
        self.results += other.results
        self.fault_counts += other.fault_counts
        self.milliseconds += other.milliseconds
        for place, fault in other.faults.items():
            self.faults[place] = min(fault, self.faults.get(place, fault))


def chance_of(kind: str, number: int, seed: int) -> random.Random:
    """Return the randomness of an input, which is always the same."""
    return random.Random(f"{seed}/{kind}/{number}")


def fuzz_kind(kind: str, numbers: range, seed: int) -> Findings:
    """Feed inputs of a kind; an exception that is no result is a fault."""
    findings = Findings()
    function, began = KINDS[kind], time.process_time()
    for number in numbers:
        try:
            findings.results[function(chance_of(kind, number, seed))] += 1
        except Exception as error:  # noqa: BLE001 - it is what fuzzing looks for
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{kind}: {type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
            findings.fault_counts[place] += 1
            findings.faults.setdefault(place, (kind, number, f"{type(error).__name__}: {str(error)[:300]!r}"))
    findings.milliseconds[kind] = round((time.process_time() - began) * 1e3)
    return findings


def fuzz(inputs: int, seed: int, kinds: Sequence[str] = tuple(KINDS)) -> Counter[str]:
    """Return the results of so many inputs, of these kinds in turn; raise the first fault, with its input."""
    results: Counter[str] = Counter()
    for index in range(inputs):
        kind, number = kinds[index % len(kinds)], index // len(kinds)
        try:
            results[KINDS[kind](chance_of(kind, number, seed))] += 1
        except Exception as error:
            error.add_note(f"input {kind}:{number} of seed {seed}")
            raise
    return results


def _work(task: tuple[str, range, int]) -> Findings:
    return fuzz_kind(*task)


def _report(findings: Findings, inputs: int, seed: int, took_s: float) -> None:
    for result, count in sorted(findings.results.items()):
        print(f"{count:9}  {result}")
    for kind, milliseconds in findings.milliseconds.most_common():
        print(f"{milliseconds / 1e3:8.1f} s on a core  {kind}")
    rate = inputs / took_s
    print(f"{inputs} inputs of seed {seed} in {took_s:.0f} s, {rate:.0f} a second, python -O {not __debug__}")
    for place, (kind, number, text) in sorted(findings.faults.items()):
        print(
            f"FAULT, {findings.fault_counts[place]} times: {place}: {text}; --seed {seed} --again '{kind}:{number}'"
        )
        _keep(kind, number, seed)
    print("NOT CLEAN" if findings.faults else "CLEAN: every error was the decoder's own")


def _keep(kind: str, number: int, seed: int) -> None:
    """Write the input of a fault to a file; those of conversations follow from their numbers alone."""
    decoder = next((each for each in _DECODERS if each.name == kind), None)
    if decoder is not None:
        _FAILURES.mkdir(parents=True, exist_ok=True)
        path = _FAILURES / f"{kind.replace(' ', '-')}-{seed}-{number}"
        path.write_bytes(varied(decoder, chance_of(kind, number, seed)))
        print(f"  its input: {path}")


def main() -> int:
    """Fuzz, and print the results; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=200_000, help="of all kinds together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", help=f"some of {', '.join(KINDS)}")
    parser.add_argument("--again", metavar="KIND:NUMBER", help="feed one input once more")
    options = parser.parse_args()
    if options.again is not None:
        kind, _, number = options.again.rpartition(":")
        print(KINDS[kind](chance_of(kind, int(number), options.seed)))
        return 0
    kinds = list(KINDS) if options.only is None else options.only.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    each = -(-options.inputs // len(kinds))
    tasks = (
        (kind, range(start, min(start + _CHUNK, each)), options.seed)
        for start in range(0, each, _CHUNK)
        for kind in kinds
    )
    began, findings = time.monotonic(), Findings()
    shared_folder()  # by this process, which removes it: processes of a pool run no exit handlers
    with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
        for found in pool.imap_unordered(_work, tasks):
            findings.add(found)
    _report(findings, each * len(kinds), options.seed, time.monotonic() - began)
    return 1 if findings.faults else 0


if __name__ == "__main__":
    sys.exit(main())
