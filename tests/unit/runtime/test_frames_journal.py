"""Finished effects of rows are journalled in groups, and adopted by the frame's next holder."""

import asyncio
from collections.abc import Sequence

import pytest

from noetl.adapters.memory.frame_journal import MemoryFrameJournal
from noetl.domain.work import Call, FrameWork, JournalEntry
from noetl.kernel.errors import ClaimLost, StoreUnavailable
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.runtime.frames_earlier import Earlier
from noetl.runtime.frames_journal import FLUSH_ENTRIES, FLUSH_SECONDS_MAX, JournalBuffer
from tests.unit.runtime.frame_scene import index_of
from tests.unit.runtime.worker_clock import VirtualClock, settle
from tests.unit.runtime.worker_scene import EXECUTION, LOOP, Behaving, Scene, frame, only_frame

FRAME = FrameId("f1")


class WatchedJournal(MemoryFrameJournal):
    """The memory journal behind a door; notes how large each append was."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[int] = []
        self.trouble: list[Exception] = []
        self.door = asyncio.Event()
        self.door.set()

    async def append(
        self, execution: ExecutionId, frame: FrameId, entries: Sequence[JournalEntry]
    ) -> None:
        self.groups.append(len(entries))
        await self.door.wait()
        if self.trouble:
            raise self.trouble.pop(0)
        await super().append(execution, frame, entries)

    async def rows(self) -> list[int]:
        return [entry.row for entry in await self.read(EXECUTION, FRAME)]


class Lease:
    def __init__(self) -> None:
        self.is_lost = False

    def check(self) -> None:
        if self.is_lost:
            raise ClaimLost("the frame", "has another holder")

    async def park(self) -> None:
        """Nothing waits here."""

    async def unpark(self) -> None:
        """Nothing waits here."""


class Desk:
    """A buffer with its surroundings."""

    def __init__(self, work: FrameWork | None = None) -> None:
        self.journal, self.clock, self.lease = WatchedJournal(), VirtualClock(), Lease()
        self.buffer = JournalBuffer(self.journal, work or frame([]), self.lease, self.clock)


def call(task: str = "post", effect: str | None = "fired") -> Call:
    return Call(task=task, effect=effect)


async def test_a_row_that_waits_is_flushed_at_once() -> None:
    desk = Desk()

    await desk.buffer.record(3, call())

    assert await desk.journal.rows() == [3]


async def test_rows_that_come_while_a_flush_runs_share_the_next_one() -> None:
    desk = Desk()
    desk.journal.door.clear()
    rows = [asyncio.create_task(desk.buffer.record(0, call()))]
    await settle()
    rows += [asyncio.create_task(desk.buffer.record(row, call())) for row in range(1, 10)]
    await settle()
    desk.journal.door.set()
    await asyncio.gather(*rows)

    assert desk.journal.groups == [1, 9]
    assert await desk.journal.rows() == list(range(10))


async def test_a_row_goes_on_only_when_its_entry_is_durable() -> None:
    desk = Desk()
    desk.journal.door.clear()
    recording = asyncio.create_task(desk.buffer.record(1, call()))
    await settle()
    assert not recording.done()

    desk.journal.door.set()
    await recording


async def test_entries_of_ended_rows_wait_for_company_but_not_for_long() -> None:
    desk = Desk()
    for row in range(3):
        desk.buffer.note(row, [call()])
    await settle()
    assert desk.journal.groups == []

    await desk.clock.advance(FLUSH_SECONDS_MAX)
    assert desk.journal.groups == [3]


async def test_many_entries_are_flushed_without_waiting_for_time() -> None:
    desk = Desk()
    for row in range(FLUSH_ENTRIES):
        desk.buffer.note(row, [call()])
    await settle()

    assert desk.journal.groups == [FLUSH_ENTRIES]


async def test_calls_without_effect_need_no_journal() -> None:
    desk = Desk()
    desk.buffer.note(1, [call(effect=None)])
    await desk.clock.advance(1)
    await desk.buffer.drop()

    assert desk.journal.groups == []
    assert desk.buffer.is_empty


async def test_a_journal_that_is_away_is_tried_again() -> None:
    desk = Desk()
    desk.journal.trouble = [StoreUnavailable("the disk is full")]
    recording = asyncio.create_task(desk.buffer.record(1, call()))
    await desk.clock.advance(1)
    await recording

    assert await desk.journal.rows() == [1]


async def test_a_lease_that_ends_while_the_journal_is_away_ends_the_row() -> None:
    desk = Desk()
    desk.journal.trouble = [StoreUnavailable("the disk is full")]
    recording = asyncio.create_task(desk.buffer.record(1, call()))
    await settle()
    desk.lease.is_lost = True
    await desk.clock.advance(1)

    with pytest.raises(ClaimLost):
        await recording


async def test_a_fault_in_the_journal_leaves_no_row_waiting() -> None:
    desk = Desk()
    desk.journal.trouble = [LookupError("a fault of ours")]
    desk.journal.door.clear()
    rows = [asyncio.create_task(desk.buffer.record(row, call())) for row in range(3)]
    await settle()
    desk.journal.door.set()

    outcomes = await asyncio.gather(*rows, return_exceptions=True)
    assert any("LookupError" in str(outcome) for outcome in outcomes)


async def test_a_row_that_is_cancelled_takes_no_other_along() -> None:
    desk = Desk()
    desk.journal.door.clear()
    rows = [asyncio.create_task(desk.buffer.record(row, call())) for row in range(2)]
    await settle()
    rows[0].cancel()
    desk.journal.door.set()
    await rows[1]

    assert await desk.journal.rows() == [0, 1]


async def test_nothing_is_appended_after_the_end() -> None:
    desk = Desk()
    desk.buffer.note(1, [call()])
    await desk.buffer.drop()
    await desk.clock.advance(1)

    assert desk.journal.groups == []


async def test_at_the_end_only_an_append_that_runs_is_waited_for() -> None:
    desk = Desk()
    desk.journal.door.clear()
    desk.buffer.note(1, [call()])
    await desk.clock.advance(FLUSH_SECONDS_MAX)
    desk.buffer.note(2, [call()])
    dropping = asyncio.create_task(desk.buffer.drop())
    await settle()
    assert not dropping.done()
    desk.journal.door.set()
    await dropping
    await desk.clock.advance(1)

    assert await desk.journal.rows() == [1]


async def test_a_journal_that_hangs_does_not_keep_a_worker_alive() -> None:
    async def run(_job: Job, journal: Journal, _hold: Hold) -> RowResult:
        await journal.record(call())
        return RowResult(status="ok")

    journal = WatchedJournal()
    journal.door.clear()
    scene = Scene(Behaving(run), steps=LOOP, journal=journal)
    async with scene.running() as running:
        await scene.do(frame([1]))
        running.cancel()
        await asyncio.wait([running], timeout=5)
        assert running.done()


async def test_later_entries_of_a_cycle_replace_earlier_ones() -> None:
    desk = Desk(frame([], attempt=2))
    entries = [
        JournalEntry(row=1, call=call()),
        JournalEntry(row=1, call=Call(task="post", run=2, effect="fired")),
        JournalEntry(row=1, call=Call(task="post", effect="repeated")),
    ]
    await desk.journal.append(EXECUTION, FRAME, entries)

    assert (await desk.buffer.earlier()).calls == {
        1: {("post", 1): entries[2].call, ("post", 2): entries[1].call}
    }


async def test_a_first_attempt_reads_no_journal() -> None:
    desk = Desk()
    await desk.journal.append(EXECUTION, FRAME, [JournalEntry(row=1, call=call())])

    assert await desk.buffer.earlier() == Earlier()


@pytest.mark.parametrize(("effect", "removals"), [("fired", 1), (None, 0)])
async def test_a_committed_frame_leaves_no_journal(effect: str | None, removals: int) -> None:
    async def run(job: Job, journal: Journal, _hold: Hold) -> RowResult:
        if effect:
            await journal.record(call())
        return RowResult(status="ok", calls=(call("last", effect),))

    scene = Scene(Behaving(run), steps=LOOP)
    removed: list[FrameId] = []

    async def remove(execution: ExecutionId, frame: FrameId) -> None:
        removed.append(frame)
        scene.journal._entries.pop((execution, frame), None)

    scene.journal.remove = remove  # type: ignore[method-assign]  # watched
    async with scene.running():
        await scene.do(frame([1, 2, 3], row_concurrency=2))

    assert only_frame(scene.desk).row_count == 3
    assert await scene.journal.read(EXECUTION, FRAME) == []
    assert len(removed) == removals


async def test_a_frame_that_was_lost_keeps_its_journal() -> None:
    async def run(job: Job, journal: Journal, _hold: Hold) -> RowResult:
        await journal.record(call())
        return RowResult(status="ok", calls=(call("last"),))

    scene = Scene(Behaving(run), steps=LOOP)
    scene.desk.trouble = {"report": [ClaimLost("the frame", "has another holder")]}
    async with scene.running():
        await scene.do(frame([1]))

    assert scene.desk.reports == []
    entries = await scene.journal.read(EXECUTION, FRAME)
    assert [entry.call and entry.call.task for entry in entries] == ["post"]


async def test_a_frame_that_broke_leaves_what_it_knows_to_the_next_holder() -> None:
    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        if index_of(job) == 2:
            raise LookupError("a fault of ours")
        return RowResult(status="ok", calls=(call(),))

    scene = Scene(Behaving(run), steps=LOOP)
    async with scene.running():
        await scene.do(frame([1, 2, 3]))

    assert [entry.row for entry in await scene.journal.read(EXECUTION, FRAME)] == [0, 1]
