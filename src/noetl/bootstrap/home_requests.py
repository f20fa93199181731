"""What commands ask of the process that holds the home and does not listen: files, which it reads.

The holder is the one writer of its executions, so a wish about one of them has to reach it.
"""

import os
from pathlib import Path
from typing import Literal

import msgspec

from noetl.bootstrap.engine import Engine
from noetl.kernel.errors import InvariantBroken, NoETLError
from noetl.kernel.ids import ExecutionId

FOLDER = "requests"
LOOK_SECONDS = 0.1


class HomeRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    act: Literal["cancel", "pause", "resume"]
    execution_id: ExecutionId
    reason: str | None = None
    cascade: bool = True


class HomeAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    is_done: bool = True  # else the holder does not run it, and whoever asked has to
    cancelled: list[ExecutionId] = []
    code: str | None = None  # of an error, whose words are `detail`
    detail: str = ""


async def answer_requests(engine: Engine) -> None:
    """What was asked of earlier holders is not for us."""
    folder = Path(engine.settings.home) / FOLDER
    for left in _found(folder, "*"):
        left.unlink(missing_ok=True)
    while True:
        for asked in _found(folder, "*.asked"):
            await _answer(engine, asked)
        await engine.clock.sleep(LOOK_SECONDS)


async def _answer(engine: Engine, asked: Path) -> None:
    request = _taken(asked)
    if request is None:
        return
    try:
        answer = await _done(engine, request)
    except InvariantBroken:
        raise
    except NoETLError as error:
        answer = HomeAnswer(code=error.code, detail=str(error))
    write_whole(asked.with_suffix(".answered"), msgspec.json.encode(answer))


async def _done(engine: Engine, request: HomeRequest) -> HomeAnswer:
    scope, execution, control = engine.settings.scope, request.execution_id, engine.control
    if request.act == "cancel":
        cancelled = await control.cancel(
            scope, execution, reason=request.reason, cascade=request.cascade
        )
        return HomeAnswer(cancelled=cancelled)
    if request.act == "pause":
        await control.pause(scope, execution, reason=request.reason)
        return HomeAnswer()
    if execution not in engine.coordinator.running:
        return HomeAnswer(is_done=False)
    await control.resume(scope, execution)
    return HomeAnswer()


def _found(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern)) if folder.is_dir() else []


def _taken(asked: Path) -> HomeRequest | None:
    """None: it was given up, or is none of ours."""
    try:
        return msgspec.json.decode(asked.read_bytes(), type=HomeRequest)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        asked.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Whole or not at all: the other side may look at any moment."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    draft = path.with_suffix(".draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    draft.replace(path)
