"""`python kernel_policer.py DEVICE BIT_S BUCKET_BYTES`: drops what arrives at a device above a rate.

A token bucket in the kernel, for kernels without act_police: some instructions (bpf(2)) at the device's ingress, in
this network namespace. It counts Ethernet frames with their header, by the monotonic clock. nftables has no small
bucket: the kernel adds the tokens of a second to its burst. Prints `up`, and ends with its input. Needs root and
Linux 6.6.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import ctypes
import os
import platform
import socket
import struct
import sys
from typing import Final

# linux/bpf.h, asm/unistd.h
_SYSCALLS: Final = {"x86_64": 321, "aarch64": 280}
_MAP_CREATE, _PROG_LOAD, _LINK_CREATE = 0, 5, 28
_MAP_TYPE_ARRAY: Final = 2
_PROG_TYPE_SCHED_CLS: Final = 3
_TCX_INGRESS: Final = 46
_MAP_LOOKUP, _KTIME_GET_NS = 1, 5
_PSEUDO_MAP_FD: Final = 1
_TC_DROP, _TC_NEXT = 2, -1
_SHIFT: Final = 20  # of the nanoseconds that a byte takes
_LOG_BYTES: Final = 1 << 16

# Operations: class, size or source, and mode
_LOAD_WORD, _LOAD_DOUBLE, _STORE_DOUBLE, _STORE_WORD_OF_CONSTANT = 0x61, 0x79, 0x7B, 0x62
_LOAD_CONSTANT: Final = 0x18
_MOVE, _MOVE_CONSTANT, _ADD, _ADD_CONSTANT = 0xBF, 0xB7, 0x0F, 0x07
_SUBTRACT, _MULTIPLY, _SHIFT_RIGHT = 0x1F, 0x2F, 0x77
_JUMP_IF_NOT_LESS, _JUMP_IF_GREATER, _JUMP_IF_CONSTANT = 0x3D, 0x2D, 0x15
_CALL, _EXIT = 0x85, 0x95


def _instruction(operation: int, to: int = 0, of: int = 0, offset: int = 0, constant: int = 0) -> bytes:
    return struct.pack("=BBhi", operation, of << 4 | to, offset, constant)


def _double(to: int, value: int, of: int = 0) -> bytes:
    """Load a constant of 64 bits, or the map of a file descriptor."""
    return _instruction(_LOAD_CONSTANT, to, of, 0, value & 0x7FFFFFFF | -(value & 0x80000000)) + _instruction(
        0, constant=value >> 32
    )


def policer_program(map_fd: int, bit_s: int, bucket_bytes: int) -> bytes:
    """Return the instructions. The map has the time at which all that has passed would have left at the rate.

    A frame passes if that time, with the frame itself, is no further away than the bucket lasts.
    """
    byte_ns = (8 * 10**9 << _SHIFT) // bit_s
    return b"".join(
        (
            _instruction(_LOAD_WORD, 9, 1),  # the frame's length
            _instruction(_STORE_WORD_OF_CONSTANT, 10, offset=-4),
            _instruction(_MOVE, 2, 10),
            _instruction(_ADD_CONSTANT, 2, constant=-4),
            _double(1, map_fd, _PSEUDO_MAP_FD),
            _instruction(_CALL, constant=_MAP_LOOKUP),
            _instruction(_JUMP_IF_CONSTANT, 0, offset=16),
            _instruction(_MOVE, 7, 0),
            _instruction(_CALL, constant=_KTIME_GET_NS),
            _instruction(_LOAD_DOUBLE, 1, 7),
            _instruction(_JUMP_IF_NOT_LESS, 1, 0, offset=1),
            _instruction(_MOVE, 1, 0),
            _double(2, byte_ns),
            _instruction(_MULTIPLY, 2, 9),
            _instruction(_SHIFT_RIGHT, 2, constant=_SHIFT),
            _instruction(_ADD, 2, 1),
            _instruction(_MOVE, 3, 2),
            _instruction(_SUBTRACT, 3, 0),
            _double(4, bucket_bytes * 8 * 10**9 // bit_s),
            _instruction(_JUMP_IF_GREATER, 3, 4, offset=3),
            _instruction(_STORE_DOUBLE, 7, 2),
            _instruction(_MOVE_CONSTANT, 0, constant=_TC_NEXT),
            _instruction(_EXIT),
            _instruction(_MOVE_CONSTANT, 0, constant=_TC_DROP),
            _instruction(_EXIT),
        )
    )


def _bpf(command: int, attributes: bytes) -> int:
    """Return the descriptor of what a command makes; raise OSError if the kernel does not."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    found = libc.syscall(_SYSCALLS[platform.machine()], command, buffer, len(attributes))
    if found < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}: {os.strerror(ctypes.get_errno())}")
    return found


def attach_policer(device: str, bit_s: int, bucket_bytes: int) -> int:
    """Attach a policer to a device of this namespace; it is there as long as the returned descriptor is open."""
    map_fd = _bpf(_MAP_CREATE, struct.pack("=5I", _MAP_TYPE_ARRAY, 4, 8, 1, 0))
    program = policer_program(map_fd, bit_s, bucket_bytes)
    code, license_, log = (ctypes.create_string_buffer(each) for each in (program, b"GPL", bytes(_LOG_BYTES)))
    pointers = [ctypes.addressof(each) for each in (code, license_, log)]
    fields = (_PROG_TYPE_SCHED_CLS, len(program) // 8, *pointers[:2], 1, _LOG_BYTES, pointers[2])
    try:
        program_fd = _bpf(_PROG_LOAD, struct.pack("=2I2Q2IQ", *fields))
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}: {log.value.decode()}") from error
    place = (program_fd, socket.if_nametoindex(device), _TCX_INGRESS)
    return _bpf(_LINK_CREATE, struct.pack("=4I2Q", *place, 0, 0, 0))


def main() -> None:
    """Police one device until the input ends."""
    device, bit_s, bucket_bytes = sys.argv[1:]
    attach_policer(device, int(bit_s), int(bucket_bytes))
    print("up", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
