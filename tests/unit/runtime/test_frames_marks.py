"""Before a row fires its first effect a mark says that it may have: one mark for many rows."""

import asyncio

import pytest

from noetl.domain.events.values import Failure
from noetl.domain.work import Call, JournalEntry
from noetl.runtime.frames_earlier import Earlier
from noetl.runtime.frames_journal import MARK_SECONDS, MARKED_ROWS_MAX, RowJournal
from noetl.templates.recorded import inline_result
from tests.unit.runtime.test_frames_journal import FRAME, Desk
from tests.unit.runtime.worker_clock import settle
from tests.unit.runtime.worker_scene import EXECUTION, frame

PAID = Call(task="pay", result=inline_result(1), effect="fired")


def desk_of(rows: int, **fields: object) -> Desk:
    return Desk(frame([0] * rows, **fields))


async def marks(desk: Desk) -> list[tuple[int, int]]:
    entries = await desk.journal.read(EXECUTION, FRAME)
    return [(entry.row, entry.rows) for entry in entries if entry.rows]


async def test_a_row_begins_only_when_its_mark_is_durable() -> None:
    desk = desk_of(3)
    desk.journal.door.clear()
    beginning = asyncio.create_task(desk.buffer.begin(1, alone=False))
    await settle()
    assert not beginning.done()

    desk.journal.door.set()
    await beginning
    assert (await marks(desk))[0][0] == 1


async def test_rows_that_begin_quickly_share_ever_larger_marks() -> None:
    desk = desk_of(1_000)
    for row in range(1_000):
        await desk.buffer.begin(row, alone=False)
        await settle()

    sizes = [rows for _, rows in await marks(desk)]
    assert sizes[:6] == [2, 4, 8, 16, 32, MARKED_ROWS_MAX]
    assert max(sizes) == MARKED_ROWS_MAX
    covered = [at for row, rows in await marks(desk) for at in range(row, row + rows)]
    assert covered == list(range(1_000))  # each once, and none beyond the frame


async def test_rows_that_take_their_time_are_marked_one_by_one() -> None:
    desk = desk_of(20)
    for row in range(20):
        await desk.buffer.begin(row, alone=False)
        await desk.clock.advance(10 * MARK_SECONDS)

    assert (await marks(desk))[1:] == [(row, 1) for row in range(2, 20)]


async def test_no_row_waits_for_a_mark_that_was_written_ahead() -> None:
    desk = desk_of(1_000)
    for row in range(200):
        await desk.buffer.begin(row, alone=False)
        await settle()
    (first, rows), *_ = reversed(await marks(desk))
    desk.journal.door.clear()

    for row in range(200, first + rows):
        await asyncio.wait_for(desk.buffer.begin(row, alone=False), 1)


async def test_an_effect_that_must_not_be_doubted_is_marked_alone() -> None:
    desk = desk_of(10)
    desk.journal.door.clear()
    rows = [asyncio.create_task(desk.buffer.begin(row, alone=True)) for row in range(4)]
    await settle()
    desk.journal.door.set()
    await asyncio.gather(*rows)

    assert await marks(desk) == [(row, 1) for row in range(4)]
    assert len(desk.journal.groups) <= 2  # rows side by side share their flushes


async def test_a_row_that_an_earlier_holder_marked_needs_no_other_mark() -> None:
    desk = desk_of(10, attempt=2)
    await desk.journal.append(EXECUTION, FRAME, [JournalEntry(row=3, rows=2)])
    earlier = await desk.buffer.earlier()

    await desk.buffer.begin(4, alone=True)
    await desk.buffer.begin(5, alone=True)

    assert earlier.begun == {3, 4}
    assert await marks(desk) == [(3, 2), (5, 1)]


async def test_a_try_that_failed_is_left_to_the_next_holder() -> None:
    desk = desk_of(10)
    tried = Call(task="pay", effect="fired", tries=3)
    RowJournal(desk.buffer, 2).tried(tried)
    await desk.clock.advance(1)

    assert await desk.journal.read(EXECUTION, FRAME) == [JournalEntry(row=2, call=tried)]


async def test_a_row_that_is_over_is_in_no_doubt_and_keeps_what_succeeded() -> None:
    desk = desk_of(10)
    await desk.buffer.begin(2, alone=True)
    await desk.buffer.record(2, PAID)
    refused = Call(task="ship", error=Failure(kind="http", message="no"), effect="fired")
    desk.buffer.note(2, [refused])
    await desk.buffer.end([2, 5])

    earlier = Earlier()
    earlier.add(await desk.journal.read(EXECUTION, FRAME), range(10))
    assert earlier == Earlier({2: {("pay", 1): PAID}}, set(), {2})


async def test_rows_without_effects_leave_no_end_behind() -> None:
    desk = desk_of(10)
    await desk.buffer.end([2, 5])
    assert desk.buffer.is_empty


@pytest.mark.parametrize(
    ("entries", "begun"),
    [
        ([], set()),
        ([JournalEntry(row=7, call=PAID)], set(range(5, 9))),  # an earlier build marked nothing
        ([JournalEntry(row=6, rows=2), JournalEntry(row=7, call=PAID)], {6, 7}),
    ],
)
def test_rows_have_begun_when_they_are_marked(entries: list[JournalEntry], begun: set[int]) -> None:
    earlier = Earlier()
    earlier.add(entries, range(5, 9))
    assert earlier.begun == begun


def test_marks_of_an_earlier_frame_hold_for_the_next_one() -> None:
    earlier = Earlier()
    earlier.add([JournalEntry(row=3, rows=2)], range(10))
    earlier.add([JournalEntry(row=3, call=PAID), JournalEntry(row=4, has_ended=True)], range(10))
    assert (earlier.begun, earlier.ended) == ({3}, {4})
