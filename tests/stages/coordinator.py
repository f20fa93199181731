"""The process to be killed: an engine that starts a stage on Spark, or goes on with it."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from tests.crash.words import tell
from tests.stages.killed_stage import LEASE_SECONDS, PATH, ROWS, SLOTS, text
from tests.stages.stage_scene import ended, eventually

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def coordinator(**order: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """One that runs until the end of the block, at most."""
    command = [sys.executable, "-m", "tests.stages.coordinator", json.dumps(order)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


async def word(process: "subprocess.Popen[bytes]", name: str) -> Any:
    """What it says under that name, next."""
    assert process.stdout is not None
    said = json.loads(await asyncio.to_thread(process.stdout.readline))
    assert name in said, said
    return said


def settings_of(home: str) -> Settings:
    return Settings(
        home=home,
        stage_engine="spark",
        spark_slots=SLOTS,
        spark_memory_mb=512,
        lease_seconds=LEASE_SECONDS,
    )


async def run(order: dict[str, Any]) -> None:
    async with open_engine(settings_of(order["home"])) as engine:
        await engine.playbooks.register(
            engine.settings.scope, text(frames_per_slot=order["frames_per_slot"])
        )
        execution = await engine.starter.start(
            StartRequest(
                scope=engine.settings.scope,
                path=PATH,
                payload={"url": order["url"], "rows": ROWS},
                execution_id=ExecutionId(order["execution"]),
            )
        )
        tell({"running": execution})
        if order["waits_for_slots"]:
            await eventually(lambda: has_all_slots(engine))
            tell({"slots": SLOTS})
        ending = await ended(engine, execution)
        result = None if ending.result is None else plain_result(value_of(ending.result))
        tell({"over": ending.status, "result": result, "error": str(ending.error)})


def has_all_slots(engine: Engine) -> bool:
    seats = engine.coordinator.seats.all()
    return len([seat for seat in seats if seat.worker.serves is not None]) == SLOTS


if __name__ == "__main__":
    asyncio.run(run(json.loads(sys.argv[1])))
