"""Filters that the kernel applies to a dump of sockets: the bytecode of linux/inet_diag.h.

Pure. A filter has alternatives, each of conditions that must all hold. An instruction compares one end of a socket
with an address and a port, and jumps forwards: to the next one, to the next alternative, behind the end (the socket
counts), or four bytes further (it does not).
"""

import socket
import struct
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final, NamedTuple

_INSTRUCTION: Final = struct.Struct("=BBH")  # struct inet_diag_bc_op
_HOST: Final = struct.Struct("=BBxxi")  # struct inet_diag_hostcond
_JUMP, _LOCAL, _REMOTE = 1, 7, 8  # INET_DIAG_BC_JMP, _S_COND, _D_COND
_ANY_PORT: Final = -1
_REJECT: Final = 4  # bytes behind the end
_MAX_BYTES: Final = 60_000  # the jumps have 16 bits


class EndCondition(NamedTuple):
    """A condition on one end of a socket: its address, its port, or both; None is any."""

    is_remote: bool
    address: str | None = None
    port: int | None = None


def compile_filter(alternatives: Sequence[Sequence[EndCondition]]) -> bytes:
    """Return the bytecode that lets a socket count if any alternative holds; without alternatives, all count.

    Raises ValueError if it is longer than the kernel takes.
    """
    code = b""
    for conditions in reversed(alternatives):
        if len(code) > _MAX_BYTES:
            raise ValueError(f"a filter of {len(code)} bytes")
        code = _compile_alternative(conditions, code)
    return code


def _compile_alternative(conditions: Sequence[EndCondition], rest: bytes) -> bytes:
    """Return an alternative and what follows it: the other ones, to be tried if this one does not hold."""
    parts = [_operand(each) for each in conditions]
    jump = _INSTRUCTION.pack(_JUMP, _INSTRUCTION.size, _INSTRUCTION.size + len(rest)) if rest else b""
    remaining = sum(_INSTRUCTION.size + len(operand) for operand in parts) + len(jump)
    code = b""
    for condition, operand in zip(conditions, parts, strict=True):
        size = _INSTRUCTION.size + len(operand)
        failed = remaining if rest else remaining + _REJECT
        code += _INSTRUCTION.pack(_REMOTE if condition.is_remote else _LOCAL, size, failed) + operand
        remaining -= size
    return code + jump + rest


def _operand(condition: EndCondition) -> bytes:
    port = _ANY_PORT if condition.port is None else condition.port
    if condition.address is None:
        return _HOST.pack(socket.AF_UNSPEC, 0, port)
    address = ip_address(condition.address)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return _HOST.pack(family, address.max_prefixlen, port) + address.packed
