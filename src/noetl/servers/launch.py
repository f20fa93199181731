"""Turn into another program that the kernel signals when our process ends. Run as a script.

A script instead of code between fork and exec: there, only calls that are safe among threads may be
made, and Python makes others.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1  # from linux/prctl.h
PARENT_GONE = "the parent ended first"


def main(arguments: list[str]) -> None:
    """`parent_pid orphan_signal user_id program [argument …]`; an empty user_id keeps the user."""
    parent_pid, orphan_signal, user_id, *command = arguments
    if user_id:
        _become(int(user_id))
    # After the change of user, because that change makes the kernel forget the request.
    _ask_for_signal_when_parent_ends(int(orphan_signal))
    if os.getppid() != int(parent_pid):
        sys.exit(PARENT_GONE)  # it ended before the request, so no signal will ever come
    try:
        os.execv(command[0], command)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")


def _become(user_id: int) -> None:
    os.setgroups([])
    os.setgid(user_id)
    os.setuid(user_id)


def _ask_for_signal_when_parent_ends(signal_number: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


if __name__ == "__main__":
    main(sys.argv[1:])
