"""WorkDesk's promises about chunks, as tests."""

from abc import ABC, abstractmethod

import pytest

from noetl.domain.events import CallPartial
from noetl.kernel.errors import ClaimLost, RequestInvalid
from noetl.testing.desk_office import Office, one
from noetl.testing.desk_words import CHAIN, chunk_of, count, worker


class WorkDeskChunks(ABC):
    @pytest.fixture
    @abstractmethod
    def office(self) -> Office: ...

    async def test_w8_chunks_are_recorded_in_order_and_once(self, office: Office) -> None:
        execution = await office.start(CHAIN)
        holder = worker()
        work = await one(office, holder)
        for index in (0, 1, 0, 1, 2):
            answer = await office.desk.record_chunk(chunk_of(work, index))
            assert answer.next_action == "continue"
        with pytest.raises(RequestInvalid):
            await office.desk.record_chunk(chunk_of(work, 4))

        events = [each.event for each in await office.events(execution)]

        told = [event.chunk_index for event in events if isinstance(event, CallPartial)]
        assert told == [0, 1, 2]

    async def test_w8_chunks_of_a_lost_claim_are_refused(self, office: Office) -> None:
        execution = await office.start(CHAIN)
        slow, quick = worker("slow"), worker("quick")
        first = await one(office, slow)
        await office.desk.record_chunk(chunk_of(first, 0))
        await office.pass_time(2 * office.lease_seconds)
        second = await one(office, quick)

        with pytest.raises(ClaimLost):
            await office.desk.record_chunk(chunk_of(first, 1))
        for index in range(2):
            await office.desk.record_chunk(chunk_of(second, index))

        assert count(await office.events(execution), "call.partial") == 2
