"""What a WorkDesk promises to holders of a cursor's frames, as tests: a part of its suite."""

import asyncio
from abc import ABC, abstractmethod

import pytest

from noetl.domain.events import FrameStarted
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.work import FrameWork, WorkerIdentity
from noetl.kernel.errors import ClaimLost
from noetl.testing.desk_office import Office, one
from noetl.testing.desk_words import CURSOR, count, ended, started, with_rows, worker


class WorkDeskClaims(ABC):
    @pytest.fixture
    @abstractmethod
    def office(self) -> Office: ...

    async def test_w7_rows_that_were_claimed_are_recorded_when_that_is_acknowledged(
        self, office: Office
    ) -> None:
        execution = await office.start(CURSOR)
        holder = worker()
        work = await _one_frame(office, holder)

        await office.desk.frame_started(started(work, holder, [{"id": 1}, {"id": 2}]))

        (event,) = _starts(await office.events(execution))
        assert (event.rows, event.transaction_id) == ([{"id": 1}, {"id": 2}], "1")
        assert event.cursor == {"first": 0, "rows": 2}

    async def test_w7_rows_of_different_frames_have_different_numbers(self, office: Office) -> None:
        execution = await office.start(CURSOR)
        workers = [worker(name) for name in "ab"]
        works = [await _one_frame(office, each) for each in workers]
        rows = [["a", "b"], ["c"]]

        saying = [
            office.desk.frame_started(started(work, by, mine))
            for work, by, mine in zip(works, workers, rows, strict=True)
        ]
        answers = await asyncio.gather(*saying)
        for work, by, answer, mine in zip(works, workers, answers, rows, strict=True):
            await office.desk.report(ended(with_rows(work, answer, mine), by))

        first, second = ((answer.first_index or 0) for answer in answers)
        assert {first, first + 1}.isdisjoint({second})
        assert count(await office.events(execution), "frame.committed") == 2

    async def test_w7_a_start_that_is_said_again_changes_nothing(self, office: Office) -> None:
        execution = await office.start(CURSOR)
        holder = worker()
        work = await _one_frame(office, holder)
        first = await office.desk.frame_started(started(work, holder, ["a"]))
        before = await office.events(execution)

        again = await office.desk.frame_started(started(work, holder, ["a"]))

        assert again.first_index == first.first_index
        assert await office.events(execution) == before

    async def test_w7_a_frame_claims_once(self, office: Office) -> None:
        await office.start(CURSOR)
        holder = worker()
        work = await _one_frame(office, holder)
        await office.desk.frame_started(started(work, holder, ["a"]))

        with pytest.raises(ClaimLost):
            await office.desk.frame_started(started(work, holder, ["b"], name="2"))

    async def test_w7_the_next_holder_is_given_the_same_rows(self, office: Office) -> None:
        await office.start(CURSOR, count=1)
        slow, quick = worker("slow"), worker("quick")
        first = await _one_frame(office, slow)
        await office.desk.frame_started(started(first, slow, ["a", "b"]))
        await office.pass_time(2 * office.lease_seconds)

        second = await _one_frame(office, quick)

        assert second.claimed is not None
        assert (second.claimed.rows, second.claimed.transaction) == (["a", "b"], "1")
        assert (second.first_index, second.row_count, second.attempt) == (0, 2, 2)


async def _one_frame(office: Office, by: WorkerIdentity) -> FrameWork:
    work = await one(office, by)
    assert isinstance(work, FrameWork)
    return work


def _starts(events: list[RecordedEvent]) -> list[FrameStarted]:
    """Those that say which rows were claimed."""
    found = [each.event for each in events if isinstance(each.event, FrameStarted)]
    return [event for event in found if event.transaction_id is not None]
