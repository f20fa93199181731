"""Keeps code of playbooks from looking into other processes, where Linux can do so. Loaded by file.

A process in a Landlock domain may not trace what is outside: neither the environment nor the memory
of the server can be read through /proc. The domain itself forbids next to nothing.
"""

import ctypes
import os

_CREATE_RULESET, _RESTRICT_SELF = 444, 446  # the same numbers on every architecture
_NO_NEW_PRIVILEGES = 38  # prctl; Landlock asks for it, and nothing started later gets more
_MAKE_CHARACTER_DEVICES = 1 << 6  # a domain has to forbid something
_CAPABILITIES_VERSION = 0x20080522
_SEES_ALL = (1 << 19) | (1 << 21) | (1 << 38)
"""CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON: with these root would look past any domain."""


def confine() -> bool:
    """For this process and all it starts, for good. False: this system has no such thing."""
    libc = ctypes.CDLL(None, use_errno=True)
    forbidden = ctypes.c_uint64(_MAKE_CHARACTER_DEVICES)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(forbidden), ctypes.sizeof(forbidden), 0)
    if ruleset < 0:
        return False
    try:
        steps = (
            lambda: libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
            lambda: libc.syscall(_RESTRICT_SELF, ruleset, 0),
            lambda: _drop_capabilities(libc, _SEES_ALL),
        )
        return all(step() == 0 for step in steps)
    finally:
        os.close(ruleset)


def _drop_capabilities(libc: ctypes.CDLL, unwanted: int) -> int:
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)  # of this process
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; low halves, then high ones
    if libc.capget(header, sets) != 0:
        return -1
    for place in range(6):
        half = unwanted & 0xFFFFFFFF if place < 3 else unwanted >> 32  # noqa: PLR2004 - halves
        sets[place] &= ~half & 0xFFFFFFFF
    return int(libc.capset(header, sets))
