"""A frame's journal while its report is on its way: what the rows did stays known until then."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from noetl.domain.work import Call, JournalEntry, Report, Reported
from noetl.kernel.errors import ClaimLost, NotFinite, StoreUnavailable
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.runtime.frames_journal import FLUSH_SECONDS_MAX
from tests.unit.runtime.test_frames_journal import FRAME, WatchedJournal
from tests.unit.runtime.worker_clock import settle
from tests.unit.runtime.worker_scene import EXECUTION, LOOP, Behaving, Scene, command, frame


class KeptJournal(WatchedJournal):
    """Notes in which order things came to their end."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[str] = []

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None:
        await super().append(execution, frame, entries)
        self.ends.append("append")

    async def remove(self, execution: ExecutionId, frame: FrameId) -> None:
        await super().remove(execution, frame)
        self.ends.append("remove")


class Sending(NamedTuple):
    """A worker whose reports wait at a door."""

    scene: Scene
    journal: KeptJournal
    door: asyncio.Event


async def fired(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
    return RowResult(status="ok", calls=(Call(task="post", effect="fired"),))


def sending() -> Sending:
    journal, door = KeptJournal(), asyncio.Event()
    scene = Scene(Behaving(fired), steps=LOOP, journal=journal, slots=1)
    record = scene.desk.report

    async def report(report: Report) -> Reported:
        await door.wait()
        return await record(report)

    scene.desk.report = report  # type: ignore[method-assign]  # kept waiting
    return Sending(scene, journal, door)


async def test_effects_of_rows_are_journalled_while_the_report_hangs() -> None:
    scene, journal, _ = sending()
    async with scene.running():
        await scene.do(frame([1, 2, 3]))
        assert journal.groups == []
        await scene.clock.advance(FLUSH_SECONDS_MAX)

        assert await journal.rows() == [0, 1, 2]


async def test_effects_of_rows_are_journalled_while_their_output_cannot_be_stored() -> None:
    scene, journal, door = sending()
    door.set()
    value = "a" * 10_000  # more than an event holds

    async def large(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return RowResult(status="ok", value=value, calls=(Call(task="post", effect="fired"),))

    scene.worker._frames._pipelines = Behaving(large)

    async def away(*_: object) -> None:
        raise StoreUnavailable("the disk is full")

    scene.results.stage_rows = away  # type: ignore[method-assign, assignment]  # it is away
    async with scene.running():
        await scene.do(frame([1, 2]))
        await scene.clock.advance(FLUSH_SECONDS_MAX)

        assert await journal.rows() == [0, 1]
    assert scene.desk.reports == []


async def test_a_prompt_report_costs_no_journal() -> None:
    scene, journal, door = sending()
    door.set()
    async with scene.running():
        await scene.do(frame([1, 2, 3]))
        await scene.clock.advance(1)

    assert len(scene.desk.reports) == 1
    assert (journal.groups, journal.ends) == ([], [])


async def test_a_journal_that_a_late_report_was_written_to_is_removed_after_it() -> None:
    scene, journal, door = sending()
    journal.door.clear()
    async with scene.running():
        await scene.do(frame([1]))
        await scene.clock.advance(FLUSH_SECONDS_MAX)
        door.set()
        await settle()
        assert len(scene.desk.reports) == 1
        assert journal.ends == []
        journal.door.set()
        await settle()

    assert journal.ends == ["append", "remove"]


async def test_a_journal_that_is_away_keeps_nobody_from_the_next_work() -> None:
    scene, journal, door = sending()
    journal.trouble = [StoreUnavailable("the disk is full")] * 100
    scene.desk.chain = [(command("77/load/1/0/2"),)]
    async with scene.running():
        await scene.do(frame([1]))
        await scene.clock.advance(FLUSH_SECONDS_MAX)
        door.set()
        await settle()
        assert len(scene.desk.reports) == 2
        await scene.clock.advance(10)

    assert journal.groups == [1]


async def test_a_heartbeat_that_meets_its_own_report_costs_no_work_that_follows() -> None:
    scene, journal, door = sending()
    journal.door.clear()
    scene.desk.chain = [(command("77/load/1/0/2"),)]
    async with scene.running():
        await scene.do(frame([1]))
        await scene.clock.advance(FLUSH_SECONDS_MAX)
        door.set()
        await settle()
        scene.desk.trouble = {"heartbeat": [ClaimLost("the frame", "is over")]}
        await scene.clock.advance(11)
        journal.door.set()
        await settle()

    assert len(scene.desk.reports) == 2


async def test_a_frame_whose_report_is_refused_keeps_what_its_rows_did() -> None:
    scene, journal, door = sending()
    door.set()
    scene.desk.trouble = {"report": [NotFinite("outcomes", float("inf"))]}
    async with scene.running():
        await scene.do(frame([1, 2]))
        await scene.clock.advance(1)

    (report,) = scene.desk.reports
    assert report.error is not None
    assert await journal.rows() == [0, 1]


async def test_a_frame_that_another_has_been_given_adds_nothing_to_its_journal() -> None:
    scene, journal, door = sending()
    door.set()
    scene.desk.trouble = {"report": [ClaimLost("the frame", "has another holder")]}
    async with scene.running():
        await scene.do(frame([1, 2]))
        await scene.clock.advance(1)

    assert journal.groups == []


async def test_a_worker_that_is_dropped_with_its_report_on_the_way_leaves_what_it_knows() -> None:
    scene, journal, _ = sending()
    async with scene.running():
        await scene.do(frame([1, 2]))
        draining = asyncio.create_task(scene.worker.drain(FLUSH_SECONDS_MAX / 2))
        await scene.clock.advance(FLUSH_SECONDS_MAX / 2)
        await draining

    assert [entry.row for entry in await journal.read(EXECUTION, FRAME)] == [0, 1]
