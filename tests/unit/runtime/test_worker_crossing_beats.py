"""A heartbeat that crosses the report of its work must not cost the work that follows."""

import asyncio

import pytest

from noetl.adapters.memory.frame_journal import MemoryFrameJournal
from noetl.domain.work import Call, LeaseAnswer
from noetl.kernel.errors import ClaimLost
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from tests.unit.runtime.worker_clock import settle
from tests.unit.runtime.worker_scene import LOOP, Behaving, Scene, command, frame


class SlowToForget(MemoryFrameJournal):
    def __init__(self) -> None:
        super().__init__()
        self.is_forgetting = False
        self.door = asyncio.Event()

    async def remove(self, execution: ExecutionId, frame: FrameId) -> None:
        self.is_forgetting = True
        await self.door.wait()


async def with_an_effect(job: Job, journal: Journal, _hold: Hold) -> RowResult:
    if job.iteration is not None:
        await journal.record(Call(task="post", run=1, effect="fired"))
    return RowResult(status="ok")


async def test_a_frame_that_is_refused_after_its_report_leaves_the_next_work_alone() -> None:
    journal = SlowToForget()
    pipelines = Behaving(with_an_effect)
    scene = Scene(pipelines, slots=1, steps=LOOP, journal=journal)
    scene.desk.trouble = {"heartbeat": [ClaimLost("frame f1", "is over")]}
    scene.desk.chain = [(command("next"), command("another"))]
    async with scene.running():
        await scene.do(frame([1]))
        assert journal.is_forgetting
        await scene.clock.advance(10)
        journal.door.set()
        await settle()

    assert [job.command_id for job in pipelines.jobs[1:]] == ["next", "another"]
    assert scene.worker.counts.lost == 0


@pytest.mark.parametrize("answer", ["refusal", "stop"])
async def test_a_beat_that_is_refused_while_the_answer_to_the_report_is_on_its_way_costs_nothing(
    answer: str,
) -> None:
    pipelines = Behaving(with_an_effect)
    scene = Scene(pipelines, slots=1, steps=LOOP)
    scene.desk.answers_reports.clear()
    scene.desk.chain = [(command("next"),)]
    if answer == "refusal":
        scene.desk.trouble = {"heartbeat": [ClaimLost("frame f1", "is over")]}
    else:
        scene.desk.answer = LeaseAnswer(next_action="stop")
    async with scene.running():
        await scene.do(frame([1]))
        assert len(scene.desk.reports) == 1
        await scene.clock.advance(15)
        assert "heartbeat" in scene.desk.said
        scene.desk.answers_reports.set()
        await settle()

    assert [job.command_id for job in pipelines.jobs[1:]] == ["next"]
    assert scene.worker.counts.lost == 0
