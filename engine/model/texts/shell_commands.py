"""Commands that the user can paste into a shell: the one place that joins words to a command line.

The name of an interface comes from the other end, and Linux allows it every character but blanks, `/` and `:`. A
command is therefore made from a list of words: the shell reads each as one word, whatever it contains.
"""

import re
import shlex
from typing import Final

from ..errors import make_printable

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][\w.]*=)(.+)", re.ASCII | re.DOTALL)


def shell_command(*words: str | int) -> str:
    """Return words as a command line, each quoted if a shell would not take it as one word.

    Of `NAME=VALUE` only the value is quoted: a shell takes a quoted name for a program.
    """
    return " ".join(_quote(make_printable(str(word))) for word in words)


def _quote(word: str) -> str:
    assignment = _ASSIGNMENT.fullmatch(word)
    return shlex.quote(word) if assignment is None else assignment[1] + shlex.quote(assignment[2])


def enable_offloads_command(interface: str, *, is_bsd: bool = False) -> str:
    """Return the command that lets an interface segment and join packets itself."""
    if is_bsd:
        return shell_command("ifconfig", interface, "tso", "lro")
    return shell_command("ethtool", "-K", interface, *("tso", "on", "gso", "on", "gro", "on"))


def negotiate_command(interface: str, *, is_bsd: bool = False) -> str:
    """Return the command that lets an interface negotiate speed and duplex with the other end of its cable."""
    if is_bsd:
        return shell_command("ifconfig", interface, "media", "autoselect")
    return shell_command("ethtool", "-s", interface, "autoneg", "on")


def set_mtu_command(interface: str, mtu_bytes: int, *, is_linux: bool = True) -> str:
    """Return the command that sets the MTU of an interface."""
    if is_linux:
        return shell_command("ip", "link", "set", interface, "mtu", mtu_bytes)
    return shell_command("ifconfig", interface, "mtu", mtu_bytes)


def set_sysctl_command(name: str, value: str | int) -> str:
    """Return the command that sets a value of the kernel's."""
    return shell_command("sysctl", "-w", f"{name}={value}")
