"""`python xdp_loss.py DEVICE PERCENT [SOURCE]`: drop a random share of large packets that arrive at an interface.

Without a source they are those of UDP from anywhere, with one those of any protocol from this IPv4 address alone.

For tests, inside a network namespace of their own. The kernel drops (XDP, bpf(2)), so it keeps up with every rate.
Handshakes and feedback are small, and pass. The program prints `ready`, and drops until its standard input ends.
"""

import ctypes
import os
import socket
import struct
import sys

_SYS_BPF = 321
_PROG_LOAD, _LINK_CREATE = 5, 28
_TYPE_XDP, _ATTACH_XDP, _SKB_MODE = 6, 37, 2
_LEAST_BYTES = 300  # shorter packets pass
_PROTOCOL_AT = 23  # of the IPv4 header, behind that of Ethernet
_SOURCE_AT = 26
_UDP = 17


def _instruction(code: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | target, offset, value)


def drop_program(percent: float, source: str | None = None) -> bytes:
    """Return the instructions (linux/bpf.h) that drop so many percent of large packets, of UDP or of a source."""
    threshold = min(2**31 - 1, int(percent / 100 * 2**32))
    if source is None:
        load, wanted = _instruction(0x71, 5, 2, _PROTOCOL_AT), _UDP
    else:
        load, wanted = _instruction(0x61, 5, 2, _SOURCE_AT), *struct.unpack("=i", socket.inet_aton(source))
    return b"".join(
        (
            _instruction(0x61, 2, 1, 0),  # r2 = data
            _instruction(0x61, 3, 1, 4),  # r3 = data_end
            _instruction(0xBF, 4, 2),  # r4 = r2 + 300
            _instruction(0x07, 4, value=_LEAST_BYTES),
            _instruction(0x2D, 4, 3, 6),  # if r4 > r3: pass
            load,
            _instruction(0x56, 5, offset=4, value=wanted),  # if it is another one: pass (32 bits are compared)
            _instruction(0x85, value=7),  # r0 = get_prandom_u32()
            _instruction(0x35, offset=2, value=threshold),  # if r0 >= threshold: pass
            _instruction(0xB7, value=1),  # return XDP_DROP
            _instruction(0x95),
            _instruction(0xB7, value=2),  # pass: return XDP_PASS
            _instruction(0x95),
        )
    )


def _bpf(command: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 128))
    result = libc.syscall(_SYS_BPF, command, buffer, len(buffer))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result)


def attach(device: str, percent: float, source: str | None = None) -> int:
    """Drop from now on; return the descriptor that holds the program in place."""
    instructions = ctypes.create_string_buffer(drop_program(percent, source))
    license_ = ctypes.create_string_buffer(b"GPL")
    count = (len(instructions) - 1) // 8
    program = struct.pack(
        "<IIQQIIQII16sII",
        *(_TYPE_XDP, count, ctypes.addressof(instructions), ctypes.addressof(license_), 0, 0, 0, 0, 0),
        b"random_loss",
        *(0, _ATTACH_XDP),
    )
    fd = _bpf(_PROG_LOAD, program)
    return _bpf(_LINK_CREATE, struct.pack("<IIII", fd, socket.if_nametoindex(device), _ATTACH_XDP, _SKB_MODE))


if __name__ == "__main__":
    attach(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
