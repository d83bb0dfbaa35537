"""Every decoder of what an iperf3 client or server sends, with valid inputs."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import os
import socket
import struct
import time
from functools import cache
from typing import Final

from decoders import BrokenPromise, Decoder, own_loop
from linkgauge.engine.iperf3.channel import Iperf3Channel
from linkgauge.engine.iperf3.protocol.json_bodies import MAX_PARAMETERS_BYTES, decode_body, encode_body
from linkgauge.engine.iperf3.protocol.parameters import TestParameters, decode_parameters, encode_parameters
from linkgauge.engine.iperf3.protocol.plans import plan_of
from linkgauge.engine.iperf3.protocol.refusals import explain_number
from linkgauge.engine.iperf3.protocol.results import EndResults, StreamResult, decode_results, encode_results
from linkgauge.engine.iperf3.protocol.states import State
from linkgauge.engine.iperf3.protocol.users import UserList, hash_password, make_token, parse_users

_USER: Final = f"mario,{hash_password('mario', 'rossi')}\n"
_PARAMETERS: Final = (
    TestParameters(parallel=4, window_bytes=65_536, mss_bytes=1_400, rate_bit_s=10**6, title="a title", tos=46),
    TestParameters(is_udp=True, block_bytes=1_200, has_64bit_counters=True, is_bidirectional=True, omit_s=1),
    TestParameters(is_reverse=True, is_zerocopy=True, congestion="bbr", auth_token="dG9r", block_limit=9),  # noqa: S106
)
_RESULTS: Final = (
    EndResults((StreamResult(1, 10**12, retransmits=3, span_s=2.5),), 150.5, 100.0, 50.5, 1, "cubic", "some lines"),
    EndResults((StreamResult(1, 900, jitter_s=0.001, errors=7, packets=100), StreamResult(3, 0)), server_output={}),
)


def _iperf3_parameters(data: bytes) -> str:
    plan = plan_of(decode_parameters(decode_body(data)))
    return str(plan.workload)


def _iperf3_results(data: bytes) -> str:
    results = decode_results(decode_body(data))
    if results != decode_results(encode_results(results)):
        raise BrokenPromise(f"{results} are others once they are sent on")
    return f"{len(results.streams)} streams"


def _iperf3_users(data: bytes) -> str:
    return f"{len(parse_users(data.decode('utf-8', 'replace')))} users"


def _iperf3_channel(data: bytes) -> str:
    """Read states, and what follows some of them, as both roles do."""
    return own_loop(os.getpid()).run_until_complete(_read_iperf3(data))


async def _read_iperf3(data: bytes) -> str:
    near, far = socket.socketpair()
    with far:
        near.setblocking(False)
        channel = Iperf3Channel(near)
        far.sendall(data[:65_536])
        far.shutdown(socket.SHUT_WR)
        try:
            for _ in range(1_000):
                state = await channel.read_state(1.0)
                if state in {State.PARAM_EXCHANGE, State.EXCHANGE_RESULTS}:
                    await channel.read_json(MAX_PARAMETERS_BYTES, 1.0)
                elif state is State.SERVER_ERROR:
                    number, _errno = await channel.read_error_words(1.0)
                    return explain_number(number)[:20]
        finally:
            channel.abort()
    return "many states"


_IPERF3_CONVERSATION: Final = b"".join(
    (
        State.PARAM_EXCHANGE.wire_byte,
        encode_body(encode_parameters(_PARAMETERS[0])),
        State.TEST_START.wire_byte,
        State.EXCHANGE_RESULTS.wire_byte,
        encode_body(encode_results(_RESULTS[0])),
        State.SERVER_ERROR.wire_byte + struct.pack(">ii", 37, 0),
    )
)


@cache
def _iperf3_keys() -> tuple[UserList, bytes]:
    """Return a list of one user, and the public key for its tokens."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65_537, 2_048)
    encoding, public = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    pem = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return UserList(parse_users(_USER), pem, accepts_pkcs1=True), key.public_key().public_bytes(encoding, public)


def _iperf3_token(data: bytes) -> str:
    users, public_key = _iperf3_keys()
    if data == _TOKEN_SEED:
        data = make_token("mario", "rossi", public_key, time.time()).encode()
    # Its clock goes fast: no token is refused for the number of them.
    return users.check(data.decode("latin-1"), time.time(), 1_000 * time.monotonic_ns())


_TOKEN_SEED: Final = b"QUJD" * 85 + b"QUI="  # as long as a token


IPERF3_DECODERS: Final = (
    Decoder(
        "iperf3 parameters",
        _iperf3_parameters,
        tuple(encode_body(encode_parameters(each))[4:] for each in _PARAMETERS),
        is_text=True,
    ),
    Decoder(
        "iperf3 results",
        _iperf3_results,
        tuple(encode_body(encode_results(each))[4:] for each in _RESULTS),
        is_text=True,
    ),
    Decoder("iperf3 users", _iperf3_users, (_USER.encode(),), is_text=True),
    Decoder("iperf3 token", _iperf3_token, (_TOKEN_SEED,), is_text=True),
    Decoder("iperf3 channel", _iperf3_channel, (_IPERF3_CONVERSATION,)),
)
