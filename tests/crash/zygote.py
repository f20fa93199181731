"""Forks a process for each order, so that a hundred starts cost one import. Run as a program.

A line `start {…}` on standard input makes a child, the line `kill` kills and reaps it. Only this
process does both, so the id it kills is never that of a stranger. Children write what they have to
say to the same standard output, each line in one piece; the line that tells a child's end is last.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow

from tests.crash import (
    cascade,
    claiming,
    engine,
    once,
    projector,
    remote,
    sharding,
    waiting,
    writer,
)
from tests.crash.words import tell

TASKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "append": writer.main,
    "cancel": cascade.main,
    "claim": claiming.main,
    "once": once.main,
    "project": projector.main,
    "run": engine.main,
    "serve": remote.serve_main,
    "shard": sharding.main,
    "wait": waiting.main,
    "work": remote.work_main,
}


def main() -> None:
    pyarrow.array([0])  # the first one imports pandas: once here, else in every child
    child = 0
    for line in sys.stdin:
        word, _, text = line.partition(" ")
        if word == "start":
            child = _fork(json.loads(text))
        elif child:
            tell({"ended": _kill(child)})
            child = 0
        else:  # to kill process 0 is to kill ourselves, and whoever started us
            tell({"failed": "there is nobody to be killed"})
    if child:  # whoever gave the orders is gone
        _kill(child)


def _fork(order: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        _work(order)
    return child


def _work(order: dict[str, Any]) -> None:
    code = 1
    try:
        TASKS[order["task"]](order)
        code = 0
    finally:
        if code:
            tell({"failed": traceback.format_exc()})
        os._exit(code)  # the way out through `main` belongs to the parent


def _kill(child: int) -> int:
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    main()
