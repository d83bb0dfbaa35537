"""Fuzzing of the control protocol: whatever a peer sends, the worst result is an error that blames it.

Usage: .venv/bin/python tests/stress/fuzz.py [--inputs 1000000] [--seed 1]

Three kinds of input in turn: whole conversations, mutated as bytes and cut anywhere, for the state machine of
either end; single messages, mutated as JSON values; and arbitrary bytes for the readers of preambles, data
connections and compressed messages. Prints the results, and the first input that broke a promise, if any.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import copy
import json
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from linkgauge.engine.model.errors import LinkgaugeError, RemoteProtocolError
from linkgauge.engine.model.events import Reason, RunEnd
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.plan import Direction, End, Plan, Settings
from linkgauge.engine.model.samples import CoreTimes, LatencyCounts, Sample, SessionSample
from linkgauge.engine.model.serialization import encode_tagged
from linkgauge.engine.model.socket_info import SocketInfo
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
_GRANTED: Final = SocketInfo(End.FAR, Direction.OUT, 1, "cubic", None, 1_448, True, True, True)

SAYINGS: Final[dict[End, tuple[Message, ...]]] = {
    End.NEAR: (
        *(
            Hello(),
            Introduction(_HOST),
            Open(Plan(Settings(Direction.DUPLEX, 5, 65_536), Workload.RR, burst=4)),
            Start(),
        ),
        *(Proof("cd" * 32), Change(Settings(Direction.IN), 1, 1), Stop(_END), Ping(1), Pong(2)),
    ),
    End.FAR: (
        *(
            Welcome(),
            Introduction(_HOST),
            Refuse("busy"),
            Ready("ab" * 16),
            SessionOpened(_GRANTED),
            Begun(),
            Report(_SAMPLE),
        ),
        *(
            Challenge("ef" * 32),
            SessionClosed(Direction.OUT, 1, 0, "closed"),
            Notice("a word"),
            Finish(_END),
            Ping(1),
            Pong(2),
        ),
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


class BrokenPromise(AssertionError):
    """An input had a worse result than an error that blames its sender."""


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


KINDS: Final[tuple[Callable[[random.Random], str], ...]] = (conversation, message, bytes_alone)


def fuzz(inputs: int, seed: int) -> Counter[str]:
    """Return the results of that many inputs; raise BrokenPromise, or any other error, with the input's number."""
    results: Counter[str] = Counter()
    for number in range(inputs):
        try:
            results[KINDS[number % len(KINDS)](random.Random(f"{seed}/{number}"))] += 1
        except Exception as error:
            error.add_note(f"input {number} of seed {seed}")
            raise
    return results


def main() -> None:
    """Fuzz, and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    results = fuzz(options.inputs, options.seed)
    took_s = time.monotonic() - began
    print(f"{results.total()} inputs of seed {options.seed} in {took_s:.0f} s; no promise was broken")
    for result, count in sorted(results.items()):
        print(f"{count:9}  {result}")


if __name__ == "__main__":
    sys.exit(main())
