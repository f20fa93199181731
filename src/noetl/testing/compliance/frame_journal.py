"""The FrameJournal's promises as tests. An adapter passes by subclassing and giving fixtures."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable

import pytest

from noetl.domain.events.values import Failure, Result
from noetl.domain.work import Call, JournalEntry
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.ports.frame_journal import FrameJournal

EXECUTION = ExecutionId("7311")
FRAME = FrameId("7322")
NEIGHBOURS = (
    (EXECUTION, FrameId("7323")),
    (EXECUTION, FrameId("732")),
    (EXECUTION, FrameId("../7311/7322")),
    (ExecutionId("7312"), FRAME),
    (ExecutionId(".."), FRAME),
)

MARK = JournalEntry(row=0, rows=64)
ENDED = JournalEntry(row=3, has_ended=True)

Reopen = Callable[[], FrameJournal]
"""The same journals through an adapter that has seen nothing of them yet."""

Tear = Callable[[ExecutionId, FrameId, int], None]
"""Cut bytes off the end of a journal, as an append that died half way leaves it."""


def entry(row: int, task: str = "post") -> JournalEntry:
    return JournalEntry(row=row, call=Call(task=task, effect="fired"))


def rich_entry(row: int) -> JournalEntry:
    call = Call(
        task="post\nagain",
        run=3,
        result=Result(
            status="ok", context={"value": {"text": "ü\n\u2028", "none": None, "n": 0.5}}
        ),
        error=Failure(kind="timeout", message="too slow", retryable=True, detail={"after": [1, 2]}),
        writes={"ctx.total": [1, {"a": None}], "iter.page": 2},
        effect="repeated",
        tries=4,
        duration_ms=1_234,
    )
    return JournalEntry(row=row, call=call)


class FrameJournalCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def frame_journal(self) -> FrameJournal: ...

    @pytest.fixture
    @abstractmethod
    def reopen(self) -> Reopen: ...

    @pytest.fixture
    @abstractmethod
    def tear(self) -> Tear: ...

    async def test_j1_what_was_appended_is_read_back_in_order(
        self, frame_journal: FrameJournal, reopen: Reopen
    ) -> None:
        groups = [[MARK, entry(2), rich_entry(0)], [entry(1)], [entry(2, "notify"), ENDED]]
        for group in groups:
            await frame_journal.append(EXECUTION, FRAME, group)

        expected = [each for group in groups for each in group]
        assert await frame_journal.read(EXECUTION, FRAME) == expected
        assert await reopen().read(EXECUTION, FRAME) == expected

    async def test_j1_a_frame_without_entries_has_an_empty_journal(
        self, frame_journal: FrameJournal
    ) -> None:
        assert await frame_journal.read(EXECUTION, FRAME) == []

    async def test_j1_two_writers_of_one_frame_lose_nothing(
        self, frame_journal: FrameJournal, reopen: Reopen
    ) -> None:
        writers = (frame_journal, reopen())
        rows = range(100)

        await asyncio.gather(
            *(writers[row % 2].append(EXECUTION, FRAME, [rich_entry(row)]) for row in rows)
        )

        read = await reopen().read(EXECUTION, FRAME)
        assert sorted(read, key=lambda each: each.row) == [rich_entry(row) for row in rows]

    @pytest.mark.parametrize("bytes_cut", [1, 2, 20, 300])
    async def test_j3_a_torn_append_leaves_what_was_before_it_and_what_comes_after(
        self, frame_journal: FrameJournal, tear: Tear, bytes_cut: int
    ) -> None:
        await frame_journal.append(EXECUTION, FRAME, [entry(0), entry(1)])
        await frame_journal.append(EXECUTION, FRAME, [rich_entry(2)])
        tear(EXECUTION, FRAME, bytes_cut)

        read = await frame_journal.read(EXECUTION, FRAME)
        assert read[:2] == [entry(0), entry(1)]
        assert read[2:] in ([], [rich_entry(2)])  # without its line's end the entry is whole

        await frame_journal.append(EXECUTION, FRAME, [entry(3)])
        assert await frame_journal.read(EXECUTION, FRAME) == [*read, entry(3)]

    async def test_j4_removing_removes_that_journal_only(self, frame_journal: FrameJournal) -> None:
        for execution, frame in ((EXECUTION, FRAME), *NEIGHBOURS):
            await frame_journal.append(execution, frame, [entry(5)])

        await frame_journal.remove(EXECUTION, FRAME)
        await frame_journal.remove(EXECUTION, FRAME)

        assert await frame_journal.read(EXECUTION, FRAME) == []
        for execution, frame in NEIGHBOURS:
            assert await frame_journal.read(execution, frame) == [entry(5)]

    async def test_j4_a_removed_journal_can_begin_again(self, frame_journal: FrameJournal) -> None:
        await frame_journal.append(EXECUTION, FRAME, [entry(1)])
        await frame_journal.remove(EXECUTION, FRAME)

        await frame_journal.append(EXECUTION, FRAME, [entry(2)])

        assert await frame_journal.read(EXECUTION, FRAME) == [entry(2)]

    async def test_j4_removing_frames_disturbs_no_append_to_others(
        self, frame_journal: FrameJournal
    ) -> None:
        async def come_and_go(frame: FrameId) -> None:
            for row in range(20):
                await frame_journal.append(EXECUTION, frame, [entry(row)])
                assert await frame_journal.read(EXECUTION, frame) == [entry(row)]
                await frame_journal.remove(EXECUTION, frame)

        await asyncio.gather(*(come_and_go(FrameId(str(number))) for number in range(8)))
