"""One run of the PFT playbook on an engine of its own, in a process that measures itself.

python -m benchmarks.pft_run < SETTING, as JSON
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec

from benchmarks.measurement import ROOT
from benchmarks.process_tree import tree_cpu_seconds
from benchmarks.stage_limits import SPARK_MASTER
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.settings import Settings
from noetl.domain.credential import NewCredential
from noetl.domain.events import FrameCommitted, FrameDispatched, FrameStarted
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.ids import ExecutionId
from noetl.runtime.starting import StartRequest
from noetl.servers.postgres import login_of
from noetl.templates.layered import plain_result
from noetl.templates.recorded import value_of
from noetl.wire.codec import open_stored

PLAYBOOK = ROOT / "examples" / "pft" / "pft_postgres.yaml"
CREDENTIAL = "pft_postgres"
WARM_PATIENTS = 5
END_SECONDS = 900
PAGE_EVENTS = 1_000


class PftSetting(msgspec.Struct):
    engine: Literal["local", "spark"]
    facilities: int
    patients: int
    api: str
    api_pid: int
    dsn: str
    postgres_pid: int


class PftRun(msgspec.Struct):
    """`rows` and `wrong` are what the playbook counted in the database when it was done."""

    seconds: float
    engine_cpu_seconds: float  # control plane, and the slots of the local engine
    children_cpu_seconds: float  # Spark: the driver, its JVM and its Python workers
    postgres_cpu_seconds: float
    api_cpu_seconds: float
    rows: int
    wrong: list[str]
    events: int
    command_events: int
    frames: int  # that had rows
    empty_frames: int  # claims that found nothing
    frame_rows: int
    failed_rows: int
    claims: int  # transactions that claimed the rows of a frame, each counted once
    dispatches: int
    spark_frames: int


async def measured(setting: PftSetting) -> PftRun:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as home:
        settings = Settings(home=home, stage_engine=setting.engine, spark_master=SPARK_MASTER)
        async with open_engine(settings) as engine:
            await _prepare(engine, setting.dsn)
            await _ended(engine, setting.api, (1, WARM_PATIENTS))  # pays for what is made once
            started, before = time.perf_counter(), _used(setting)
            execution, result = await _ended(
                engine, setting.api, (setting.facilities, setting.patients)
            )
            seconds, after = time.perf_counter() - started, _used(setting)
            own, tree, postgres, api = (
                end - begin for begin, end in zip(before, after, strict=True)
            )
            return PftRun(
                seconds=seconds,
                engine_cpu_seconds=own,
                children_cpu_seconds=max(0.0, tree - own),
                postgres_cpu_seconds=postgres,
                api_cpu_seconds=api,
                rows=result["rows"],
                wrong=result["wrong"],
                **await _counted(engine, execution),
            )


def _used(setting: PftSetting) -> tuple[float, float, float, float]:
    """Processor seconds: of this process, with its children, and of the two servers."""
    others = (tree_cpu_seconds(pid) for pid in (setting.postgres_pid, setting.api_pid))
    postgres, api = others
    return time.process_time(), tree_cpu_seconds(), postgres, api


async def _prepare(engine: Engine, dsn: str) -> None:
    scope = engine.settings.scope
    credential = NewCredential(name=CREDENTIAL, type="postgres", data=login_of(dsn))
    await engine.platform.credentials.put(scope, credential)
    await engine.playbooks.register(scope, PLAYBOOK.read_text())


async def _ended(
    engine: Engine, api: str, size: tuple[int, int]
) -> tuple[ExecutionId, dict[str, Any]]:
    facilities, patients = size
    payload = {"api": api, "num_facilities": facilities, "patients_per_facility": patients}
    request = StartRequest(
        scope=engine.settings.scope, path="examples/pft/postgres", payload=payload
    )
    execution = await engine.starter.start(request)
    ending = await engine.coordinator.ending(execution, END_SECONDS)
    if ending is None or ending.status != "COMPLETED" or ending.result is None:
        raise AssertionError(ending)
    result: dict[str, Any] = plain_result(value_of(ending.result))
    return execution, result


async def _counted(engine: Engine, execution: ExecutionId) -> dict[str, int]:
    """What the log says of the run. Frames are those of cursors."""
    types: Counter[str] = Counter()
    dispatches: Counter[str] = Counter()
    claims: set[tuple[str, str]] = set()
    by_spark = 0
    committed: list[tuple[str, FrameCommitted]] = []
    async for recorded in _events(engine, execution):
        event, frame = recorded.event, str(recorded.envelope.frame_id)
        types[recorded.envelope.event_type] += 1
        if isinstance(event, FrameDispatched):
            dispatches[frame] += 1
            by_spark += event.worker_id.startswith("spark/")
        elif isinstance(event, FrameStarted) and event.transaction_id is not None:
            claims.add((frame, event.transaction_id))
        elif isinstance(event, FrameCommitted):
            committed.append((frame, event))
    claimed = {frame for frame, _ in claims}
    full = [event for frame, event in committed if frame in claimed]
    empty = [frame for frame, event in committed if event.row_count == 0]
    return {
        "events": types.total(),
        "command_events": sum(types[name] for name in types if name.startswith("command.")),
        "frames": len(full),
        "empty_frames": len(empty),
        "frame_rows": sum(event.row_count for event in full),
        "failed_rows": sum(event.failed_rows for event in full),
        "claims": len(claims),
        "dispatches": sum(dispatches[frame] for frame in claimed),
        "spark_frames": by_spark,
    }


async def _events(engine: Engine, execution: ExecutionId) -> AsyncIterator[RecordedEvent]:
    version = 0
    while page := await engine.platform.log.read(
        execution, after_version=version, limit=PAGE_EVENTS
    ):
        for stored in page:
            yield open_stored(stored, verify=False)
        version += len(page)


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=PftSetting)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(measured(given))))
