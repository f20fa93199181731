"""Functions that slots run in tests. Spark is given this file: nothing of the tests is imported."""

import os
import socket
import sys
import time
from pathlib import Path

import msgspec

from noetl.spark.slots import Slot

WAIT_SECONDS_MAX = 120.0


def echo(slot: Slot, argument: bytes) -> bytes:
    return msgspec.json.encode({"slot": slot, "argument": argument.decode(), "pid": os.getpid()})


def fail_once(slot: Slot, argument: bytes) -> bytes:
    if slot.incarnation == 0:
        raise ValueError("the first one always fails")
    return echo(slot, argument)


def fail_always(slot: Slot, argument: bytes) -> bytes:
    raise ValueError(f"slot {slot.number} cannot do it")


def die_once(slot: Slot, argument: bytes) -> bytes:
    """As if the machine had taken the worker's memory."""
    if slot.incarnation == 0:
        os._exit(9)
    return echo(slot, argument)


def wait_for_file(slot: Slot, argument: bytes) -> bytes:
    """Say that it runs, in a folder, and go on once somebody puts `go` there."""
    folder = Path(argument.decode())
    (folder / f"running-{slot.tag}-{slot.number}").write_text(str(os.getpid()))
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not (folder / "go").exists():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)
    return echo(slot, argument)


def surroundings(slot: Slot, argument: bytes) -> bytes:
    import noetl  # noqa: PLC0415 - which one the slot would use

    seen = {
        "argv": sys.argv,
        "environment": dict(os.environ),
        "host": socket.gethostname(),
        "noetl": noetl.__file__,
        "loaded": [os.getpid(), id(noetl), len(sys.path)],
    }
    return msgspec.json.encode(seen)
