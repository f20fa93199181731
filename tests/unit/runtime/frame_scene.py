"""Frames that run through a worker: rows in, a report out."""

from typing import Any

from noetl.domain.work import FrameReport
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.pipeline.timing import TaskTime
from tests.unit.runtime.worker_scene import LOOP, Behaving, Behaviour, Scene, frame, only_frame


def index_of(job: Job) -> int:
    assert job.iteration is not None
    return job.iteration.index


async def doubled(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
    assert job.iteration is not None
    return RowResult(
        status="ok", value=2 * job.iteration.item, times={"load": TaskTime("noop", 1, 0.005)}
    )


async def ran(behaviour: Behaviour, rows: list[Any] | None, **fields: Any) -> FrameReport:
    scene = Scene(Behaving(behaviour), steps=LOOP)
    async with scene.running():
        await scene.do(frame(rows, **fields))
        return only_frame(scene.desk)
