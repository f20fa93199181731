"""The EventLog's promises where writers repeat themselves or use ids that are none."""

from abc import ABC, abstractmethod
from typing import cast

import msgspec
import pytest

from noetl.domain.events import StepEntered
from noetl.domain.log import EMPTY_STREAM, Append, Appended, AtEvent, AtPosition
from noetl.kernel.errors import (
    ChainBroken,
    DuplicateFact,
    KeyReused,
    LogError,
    ScopeMismatch,
    VersionConflict,
)
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import Scope
from noetl.ports.event_log import EventLog
from noetl.testing.appends import (
    FIRST,
    SECOND,
    STEP,
    append_of,
    drafts,
    issued,
    keyed,
    land,
    refused,
)
from noetl.testing.histories import History, source_of
from noetl.wire.codec import seal


class EventLogEdges(ABC):
    @pytest.fixture
    @abstractmethod
    def event_log(self) -> EventLog: ...

    @pytest.mark.parametrize("odd", ["", "abc", "-1", "007", "9" * 25, "\uff11\uff12"])
    async def test_l1_an_id_that_is_none_names_no_stream(
        self, event_log: EventLog, odd: str
    ) -> None:
        execution = ExecutionId(odd)
        assert await event_log.read(execution) == []
        assert await event_log.head(execution) == EMPTY_STREAM
        assert await event_log.scope_of(execution) is None
        assert await event_log.version_at(execution, AtPosition(1)) is None

    async def test_l7_a_key_twice_in_one_append_is_refused(self, event_log: EventLog) -> None:
        history = History(FIRST)
        error = await refused(event_log, append_of([keyed(history, "k"), keyed(history, "k")]))
        assert isinstance(error, KeyReused)
        assert await event_log.tail() == []

    async def test_l8_a_fact_twice_in_one_append_is_refused(self, event_log: EventLog) -> None:
        history = History(FIRST)
        error = await refused(event_log, append_of([issued(history, "a"), issued(history, "a")]))
        assert isinstance(error, DuplicateFact)
        assert await event_log.tail() == []

    async def test_l9_an_event_id_twice_in_one_append_is_refused(self, event_log: EventLog) -> None:
        one, two = drafts(2)
        error = await refused(
            event_log, append_of([one, msgspec.structs.replace(two, event_id=one.event_id)])
        )
        assert isinstance(error, ChainBroken)
        assert await event_log.tail() == []

    async def test_l9_an_event_id_of_the_stream_is_not_used_again(
        self, event_log: EventLog
    ) -> None:
        first = append_of(drafts(2))
        await land(event_log, first)
        used = first.events[0].envelope.event_id
        again = msgspec.structs.replace(
            History(FIRST, node=7).draft(StepEntered(step=STEP, visit=9)), event_id=used
        )

        error = await refused(event_log, append_of([again], await event_log.head(FIRST)))

        assert isinstance(error, LogError)
        assert await event_log.version_at(FIRST, AtEvent(EventId(used))) == 1
        assert len(await event_log.read(FIRST)) == 2

    async def test_l9_a_known_key_does_not_open_another_tenants_stream(
        self, event_log: EventLog
    ) -> None:
        await land(event_log, append_of([keyed(History(FIRST), "k")]))
        stranger = Scope("acme", "research")
        sealed = seal(
            [keyed(History(FIRST, node=7), "k")], EMPTY_STREAM, source_of(FIRST, stranger)
        )

        error = await refused(event_log, Append(stranger, FIRST, 0, sealed))

        assert isinstance(error, (ScopeMismatch, VersionConflict))
        assert len(await event_log.read(FIRST)) == 1

    async def test_l13_what_was_never_moved_is_not_archived(self, event_log: EventLog) -> None:
        await land(event_log, append_of(drafts(1)))

        assert not await event_log.is_archived(FIRST)
        assert not await event_log.is_archived(SECOND)

    async def test_l6_a_caller_that_passes_nonsense_fails_alone(self, event_log: EventLog) -> None:
        sound = append_of(drafts(1))
        nonsense = Append(sound.scope, SECOND, cast(int, "0"), sound.events)

        outcomes = await event_log.append([nonsense, sound])

        assert isinstance(outcomes[0], ChainBroken)
        assert isinstance(outcomes[1], Appended)
