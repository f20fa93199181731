"""The EventLog's promises as tests. An adapter passes by subclassing and giving an `event_log`."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable

import pytest

from noetl.domain.events import (
    CheckpointCommitted,
    CommandIssued,
    Event,
    FaninCompleted,
    LoopDone,
    StepEntered,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.log import (
    EMPTY_STREAM,
    Append,
    Appended,
    AtEvent,
    AtPosition,
    AtTime,
    StoredEvent,
    StreamHead,
)
from noetl.kernel.errors import (
    ChainBroken,
    DuplicateFact,
    KeyReused,
    ScopeMismatch,
    VersionConflict,
)
from noetl.kernel.ids import CommandId, EventId, LoopId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.event_log import EventLog
from noetl.testing.appends import (
    FIRST,
    SECOND,
    STEP,
    THIRD,
    append_of,
    drafts,
    head_after,
    issued,
    keyed,
    land,
    refused,
)
from noetl.testing.compliance.event_log_edges import EventLogEdges
from noetl.testing.histories import History, command_cycle, execution_ids, source_of
from noetl.wire.codec import open_stored, seal

OTHER_SCOPE = Scope("acme", "research")
PATIENCE_SECONDS = 0.001

Reopen = Callable[[EventLog], Awaitable[EventLog]]


class EventLogCompliance(EventLogEdges):
    @pytest.fixture
    @abstractmethod
    def reopen(self) -> Reopen:
        """Close the log and open it again as another process would."""

    async def test_l1_events_read_back_byte_for_byte(self, event_log: EventLog) -> None:
        history = History(FIRST)
        cycle = list(command_cycle(history, STEP))
        annotated = history.draft(
            StepEntered(step=STEP), annotations={"locality": {"zone": "a"}, "worker_locator": "w"}
        )
        append = append_of([*cycle, annotated])
        await land(event_log, append)

        stored = await event_log.read(FIRST)

        assert [row.canonical for row in stored] == [item.canonical for item in append.events]
        assert [row.checksum for row in stored] == [item.checksum for item in append.events]
        assert [row.stream_version for row in stored] == list(range(1, len(stored) + 1))
        assert [open_stored(row).event for row in stored] == [item.event for item in append.events]
        assert open_stored(stored[-1]).annotations == annotated.annotations

    async def test_l1_pages_cover_the_stream(self, event_log: EventLog) -> None:
        await land(event_log, append_of(drafts(7)))

        pages = [await event_log.read(FIRST, after_version=at, limit=3) for at in (0, 3, 6, 7)]

        versions = [[row.stream_version for row in page] for page in pages]
        assert versions == [[1, 2, 3], [4, 5, 6], [7], []]

    async def test_l1_an_unknown_stream_is_empty(self, event_log: EventLog) -> None:
        assert await event_log.read(SECOND) == []
        assert await event_log.head(SECOND) == EMPTY_STREAM
        assert await event_log.scope_of(SECOND) is None

    async def test_l2_an_append_with_one_bad_event_writes_nothing(
        self, event_log: EventLog
    ) -> None:
        history = History(FIRST)
        await land(event_log, append_of([issued(history, "one")]))
        head = await event_log.head(FIRST)
        good, bad = history.draft(StepEntered(step=STEP)), issued(history, "one")

        await refused(event_log, append_of([good, bad], head))

        assert len(await event_log.read(FIRST)) == 1
        assert await event_log.head(FIRST) == head

    async def test_l3_a_wrong_version_writes_nothing(self, event_log: EventLog) -> None:
        first = append_of(drafts(2))
        await land(event_log, first)

        error = await refused(event_log, append_of(drafts(1)))

        assert isinstance(error, VersionConflict)
        assert (error.expected, error.actual) == (0, 2)
        assert len(await event_log.read(FIRST)) == 2

    async def test_l4_one_of_sixteen_racers_lands(self, event_log: EventLog) -> None:
        racers = (
            event_log.append([append_of([History(FIRST, node=node).draft(StepEntered(step=STEP))])])
            for node in range(16)
        )

        outcomes = [outcome for (outcome,) in await asyncio.gather(*racers)]

        assert sum(isinstance(outcome, Appended) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, VersionConflict) for outcome in outcomes) == 15
        assert len(await event_log.read(FIRST)) == 1

    async def test_l5_a_reader_under_load_misses_nothing(self, event_log: EventLog) -> None:
        executions = execution_ids(40)
        appends = [append_of(drafts(3, execution), execution=execution) for execution in executions]
        writing = asyncio.gather(*(event_log.append([append]) for append in appends))

        seen: list[StoredEvent] = []
        finished = False
        while not finished:
            finished = writing.done()  # asked before reading, so the last read comes after it
            last = seen[-1].position if seen else 0
            seen += await event_log.tail(after_position=last, limit=7)
            await asyncio.wait([writing], timeout=PATIENCE_SECONDS)
        while page := await event_log.tail(after_position=seen[-1].position):
            seen += page

        assert len(seen) == 3 * len(executions)
        positions = [event.position for event in seen]
        assert positions == sorted(set(positions))

    async def test_l6_the_refused_are_told_and_the_rest_lands(self, event_log: EventLog) -> None:
        await land(event_log, append_of(drafts(1)))
        stale = append_of(drafts(2))
        fresh = append_of(drafts(2, SECOND), execution=SECOND)
        following = append_of(
            [History(SECOND, node=9).draft(StepEntered(step=STEP))], head_after(fresh), SECOND
        )

        outcomes = await event_log.append([stale, fresh, following])

        assert isinstance(outcomes[0], VersionConflict)
        landed = [outcome.version for outcome in outcomes[1:] if isinstance(outcome, Appended)]
        assert landed == [2, 3]
        assert len(await event_log.read(FIRST)) == 1
        assert len(await event_log.read(SECOND)) == 3

    async def test_l7_the_same_report_twice_is_recorded_once(self, event_log: EventLog) -> None:
        report = append_of(list(command_cycle(History(FIRST), STEP)))
        first = await land(event_log, report)
        history = History(FIRST, node=5)
        again = [item for item in command_cycle(history, STEP) if item.idempotency_key]

        stale = await land(event_log, append_of(again))
        current = await land(event_log, append_of(again, await event_log.head(FIRST)))

        assert stale.duplicate
        assert current.duplicate
        assert not first.duplicate
        assert first.first_position <= stale.first_position <= first.last_position
        assert len(await event_log.read(FIRST)) == len(report.events)

    async def test_l7_a_key_with_other_events_is_refused(self, event_log: EventLog) -> None:
        history = History(FIRST)
        await land(event_log, append_of([keyed(history, "k1")]))
        head = await event_log.head(FIRST)

        error = await refused(
            event_log, append_of([keyed(history, "k1"), keyed(history, "k2")], head)
        )

        assert isinstance(error, KeyReused)
        assert error.key == "k1"
        assert len(await event_log.read(FIRST)) == 1

    async def test_l7_keys_of_another_execution_do_not_count(self, event_log: EventLog) -> None:
        await land(event_log, append_of([keyed(History(FIRST), "k1")]))
        other = append_of([keyed(History(SECOND), "k1")], execution=SECOND)
        assert not (await land(event_log, other)).duplicate

    @pytest.mark.parametrize(
        "fact",
        [
            CommandIssued(step=STEP, tool="noop"),
            LoopDone(loop_id=LoopId("load@1"), step=STEP, status="ok", stats=LoopStats(total=1)),
            FaninCompleted(loop_id=LoopId("load@1"), status="complete", total=1, done=1),
            CheckpointCommitted(epoch_id="7", last_event_id=EventId("1")),
        ],
        ids=lambda fact: fact.TYPE,
    )
    async def test_l8_a_fact_that_exists_once_exists_once(
        self, event_log: EventLog, fact: Event
    ) -> None:
        history = History(FIRST)
        place = {"command_id": CommandId("c1")} if isinstance(fact, CommandIssued) else {}
        await land(event_log, append_of([history.draft(fact, **place)]))
        head = await event_log.head(FIRST)

        error = await refused(event_log, append_of([history.draft(fact, **place)], head))

        assert isinstance(error, DuplicateFact)
        assert len(await event_log.read(FIRST)) == 1

    async def test_l9_a_forked_chain_is_refused(self, event_log: EventLog) -> None:
        await land(event_log, append_of(drafts(2)))
        wrong_parent = StreamHead(2, EventId("1"))
        history = History(FIRST, node=7)

        error = await refused(
            event_log, append_of([history.draft(StepEntered(step=STEP))], wrong_parent)
        )

        assert isinstance(error, ChainBroken)

    async def test_l9_gaps_and_strangers_are_refused(self, event_log: EventLog) -> None:
        whole = append_of(drafts(3))
        gap = Append(DEFAULT_SCOPE, FIRST, 0, (whole.events[0], whole.events[2]))
        stranger = Append(DEFAULT_SCOPE, SECOND, 0, whole.events)
        empty = Append(DEFAULT_SCOPE, FIRST, 0, ())

        outcomes = await event_log.append([gap, stranger, empty])

        assert [type(outcome) for outcome in outcomes] == [ChainBroken] * 3
        assert await event_log.tail() == []

    async def test_l9_a_stream_has_one_scope(self, event_log: EventLog) -> None:
        await land(event_log, append_of(drafts(1)))
        head = await event_log.head(FIRST)
        history = History(FIRST, node=8)
        sealed = seal([history.draft(StepEntered(step=STEP))], head, source_of(FIRST, OTHER_SCOPE))

        error = await refused(event_log, Append(OTHER_SCOPE, FIRST, head.version, sealed))

        assert isinstance(error, ScopeMismatch)
        assert await event_log.scope_of(FIRST) == DEFAULT_SCOPE

    async def test_l10_version_at_event_position_and_time(self, event_log: EventLog) -> None:
        first = append_of(drafts(2))
        await land(event_log, first)
        await land(event_log, append_of(drafts(3, SECOND), execution=SECOND))
        history = History(FIRST, node=6)
        third = history.draft(StepEntered(step=STEP, visit=3))
        await land(event_log, append_of([third], head_after(first)))
        stored = await event_log.read(FIRST)

        assert [await event_log.version_at(FIRST, AtPosition(at)) for at in range(8)] == [
            0, 1, 2, 2, 2, 2, 3, 3,
        ]  # fmt: skip
        second_event = first.events[1].envelope.event_id
        assert await event_log.version_at(FIRST, AtEvent(second_event)) == 2
        assert await event_log.version_at(FIRST, AtEvent(EventId("1"))) is None
        assert await event_log.version_at(FIRST, AtTime(stored[-1].ingest_time)) == 3
        assert (
            await event_log.version_at(FIRST, AtTime(Instant("2020-01-01T00:00:00.000000Z"))) == 0
        )
        assert await event_log.version_at(THIRD, AtPosition(5)) is None
        times = [event.ingest_time for event in stored]
        assert times == sorted(times)

    async def test_l11_a_log_opened_again_holds_everything(
        self, event_log: EventLog, reopen: Reopen
    ) -> None:
        append = append_of(list(command_cycle(History(FIRST), STEP)))
        await land(event_log, append)

        opened = await reopen(event_log)

        stored = await opened.read(FIRST)
        assert [row.canonical for row in stored] == [item.canonical for item in append.events]
        assert await opened.head(FIRST) == head_after(append)

    async def test_l12_the_identity_stays_with_the_log(
        self, event_log: EventLog, reopen: Reopen
    ) -> None:
        identity = await event_log.identity()
        assert identity
        assert await (await reopen(event_log)).identity() == identity
