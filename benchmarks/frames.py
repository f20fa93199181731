"""`frames.claim_commit`: frames claimed and committed by somebody who does no work on them.

In this process, over HTTP as our workers do, and over HTTP by stages and frames as workers of any
make do; several lines at once, and each commit brings the next frame along. The limit is the same
as for playbooks: the same events, in the same appends, and nothing else.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

from benchmarks.measurement import Measurement
from benchmarks.playbooks import Appends, append_bare
from benchmarks.process_tree import tree_cpu_seconds
from noetl.bootstrap.engine import Engine, open_engine
from noetl.bootstrap.secret_key import internal_key
from noetl.bootstrap.serving import serve
from noetl.bootstrap.settings import Settings
from noetl.client.connection import Connection
from noetl.client.work_desk import HttpWorkDesk
from noetl.domain.frame_messages import FrameAsk, FrameCommit, FrameDone, LentFrame, RowEnd
from noetl.domain.work import FrameReport, FrameWork, RowOutcome, Work, WorkerIdentity
from noetl.kernel.errors import StageOver
from noetl.kernel.ids import ExecutionId, StageId, WorkerId
from noetl.ports.work_desk import WorkDesk
from noetl.runtime.starting import StartRequest

FRAMES = 500
LINES = 8
END_SECONDS = 300

How = Literal["in_process", "http", "frames"]

_TEXT = f"""apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: frames, path: bench/frames}}
workflow:
  - step: each
    loop:
      in: "{{{{ range({FRAMES}) | list }}}}"
      iterator: n
      engine: local
      spec: {{mode: parallel, max_in_flight: {2 * LINES}, frame: {{max_rows: 1}}}}
    tool: {{kind: noop}}
"""
_WORKER = WorkerIdentity(worker_id=WorkerId("bench"), boot_id="one", slots=LINES, tools=("noop",))


async def _line(desk: WorkDesk) -> int:
    """One slot's worth, until there is nothing more to claim."""
    done = 0
    while works := await desk.claim(_WORKER, 1, 0.5):
        waiting: list[Work] = list(works)
        while waiting:
            work = waiting.pop()
            assert isinstance(work, FrameWork)
            waiting += (await desk.report(_committed(work))).next_work
            done += 1
    return done


def _committed(work: FrameWork) -> FrameReport:
    return FrameReport(
        execution_id=work.execution_id,
        stage_id=work.stage_id,
        frame_id=work.frame_id,
        attempt=work.attempt,
        worker_id=_WORKER.worker_id,
        row_count=work.row_count,
        outcomes=(RowOutcome(index=work.first_index, status="ok", value={"status": "ok"}),),
    )


async def _foreign_line(connection: Connection, stage: StageId, worker: str) -> int:
    """A worker by frames has a seat of its own: one question at a time."""
    me, done, is_over = WorkerId(worker), 0, False
    while not is_over:
        ask, path = FrameAsk(worker_id=me, wait_seconds=0.5), f"/api/stages/{stage}/frames/claim"
        frames: list[LentFrame] = []
        with suppress(StageOver):  # by the commit of another line
            frames = await connection.post(path, ask, list[LentFrame])
        is_over = not frames
        while frames:
            frame = frames.pop()
            ends = (RowEnd(value={"status": "ok"}),) * frame.row_count
            commit = FrameCommit(worker_id=me, outcomes=ends, requested_count=1)
            path = f"/api/frames/{frame.frame_id}/commit"
            answer = await connection.post(path, commit, FrameDone)
            frames += answer.frames
            done += 1
            is_over = answer.next_action == "stop"
    return done


async def _stage(engine: Engine, execution: ExecutionId) -> StageId:
    while True:
        running = await engine.coordinator.load(execution)
        for stage_id in running.state.stages:
            return stage_id
        await asyncio.sleep(0.01)


@asynccontextmanager
async def _over_http(engine: Engine) -> AsyncIterator[Connection]:
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(engine, "127.0.0.1", 0, address.set_result))
    key = internal_key(Path(engine.settings.home), engine.settings.secret_key)
    connection = Connection(await address, key)
    yield connection
    await connection.close()
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def _lines(engine: Engine, execution: ExecutionId, how: How, connection: Connection) -> int:
    if how == "frames":
        stage = await _stage(engine, execution)
        foreign = (_foreign_line(connection, stage, f"bench-{n}") for n in range(LINES))
        return sum(await asyncio.gather(*foreign))
    desk: WorkDesk = engine.desk if how == "in_process" else HttpWorkDesk(connection)
    await desk.register(_WORKER)
    return sum(await asyncio.gather(*(_line(desk) for _ in range(LINES))))


async def _measured(name: str, how: How) -> Measurement:
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="noetl-bench-"))
        settings = Settings(home=f"{folder}/home")
        engine = await stack.enter_async_context(open_engine(settings, has_worker=False))
        await engine.playbooks.register(settings.scope, _TEXT)
        connection = await stack.enter_async_context(_over_http(engine))
        appends = Appends()
        engine.coordinator.listeners.append(appends)
        request = StartRequest(scope=settings.scope, path="bench/frames")
        execution = await engine.starter.start(request)
        started, cpu = time.perf_counter(), tree_cpu_seconds()
        lines = asyncio.create_task(_lines(engine, execution, how, connection))
        ending = await engine.coordinator.ending(execution, END_SECONDS)
        seconds, cpu_seconds = time.perf_counter() - started, tree_cpu_seconds() - cpu
        if ending is None or ending.status != "COMPLETED":
            raise AssertionError(ending)
        done = await lines
        bare_seconds = await append_bare(engine.platform.log, appends, Path(folder))
    return Measurement(
        name=name,
        value=done / seconds,
        unit="frames/s",
        limit=done / bare_seconds,
        limit_name="bare appends of the same events",
        detail={
            "frames": done,
            "lines": LINES,
            "seconds": round(seconds, 3),
            "cpu_seconds": round(cpu_seconds, 3),
            "events": sum(map(sum, appends.sizes.values())),
        },
    )


async def claim_commit() -> AsyncIterator[Measurement]:
    yield await _measured("frames.claim_commit.in_process", "in_process")
    yield await _measured("frames.claim_commit.http", "http")
    yield await _measured("frames.claim_commit.http_frames", "frames")


BENCHMARKS: dict[str, Callable[[], AsyncIterator[Measurement]]] = {
    "frames.claim_commit": claim_commit,
}
