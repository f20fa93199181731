"""Many writers share few flushes, and each hears of its own append alone."""

import asyncio
from collections.abc import Sequence

import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.domain.events import StepEntered
from noetl.domain.log import EMPTY_STREAM, Append, Appended, AppendOutcome
from noetl.kernel.errors import InvariantBroken, LogUnavailable, VersionConflict
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import GROUP_APPENDS_MAX
from noetl.runtime.group_commit import GROUP_EVENTS_MAX, GroupCommit
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import seal

NOW = Instant("2026-01-01T00:00:00.000000Z")
ENTERED = StepEntered(step=StepName("load"))
PATIENCE_SECONDS = 5.0
"""Whoever waits longer would wait for ever."""


class WatchedLog(MemoryEventLog):
    """The memory log, with a door in front of it; notes how large each group was."""

    def __init__(self) -> None:
        super().__init__(lambda: NOW)
        self.groups: list[int] = []
        self.knocked = asyncio.Event()
        self.door = asyncio.Event()
        self.door.set()
        self.failures: list[BaseException] = []
        self.answers_lost = 0

    async def append(self, group: Sequence[Append]) -> list[AppendOutcome]:
        self.groups.append(len(group))
        self.knocked.set()
        await self.door.wait()
        if self.failures:
            raise self.failures.pop()
        outcomes = await super().append(group)
        return outcomes[self.answers_lost :]


@pytest.fixture
def log() -> WatchedLog:
    return WatchedLog()


@pytest.fixture
def writer(log: WatchedLog) -> GroupCommit:
    return GroupCommit(log)


def first_append(execution: ExecutionId, events: int = 1) -> Append:
    history = History(execution)
    drafts = [history.draft(ENTERED) for _ in range(events)]
    sealed = seal(drafts, EMPTY_STREAM, source_of(execution))
    return Append(DEFAULT_SCOPE, execution, 0, sealed)


def appends(count: int, events: int = 1) -> list[Append]:
    return [first_append(execution, events) for execution in execution_ids(count)]


def start(writer: GroupCommit, group: Sequence[Append]) -> "list[asyncio.Task[Appended]]":
    return [asyncio.create_task(writer.append(append)) for append in group]


async def queue(writer: GroupCommit, group: Sequence[Append]) -> "list[asyncio.Task[Appended]]":
    """Start the appends and give each of them a turn."""
    tasks = start(writer, group)
    await asyncio.wait(tasks, timeout=0)
    return tasks


async def test_a_lone_writer_is_flushed_at_once(log: WatchedLog, writer: GroupCommit) -> None:
    (append,) = appends(1, events=2)
    assert await writer.append(append) == Appended(2, 1, 2)
    assert log.groups == [1]
    assert len(await log.read(append.execution_id)) == 2


async def test_what_queued_while_a_flush_ran_is_the_next_group(
    log: WatchedLog, writer: GroupCommit
) -> None:
    first, *others = appends(11)
    log.door.clear()
    (running,) = start(writer, [first])
    await log.knocked.wait()
    waiting = await queue(writer, others)
    assert log.groups == [1]

    log.door.set()
    outcomes = await asyncio.gather(running, *waiting)

    assert log.groups == [1, 10]
    assert [outcome.first_position for outcome in outcomes] == list(range(1, 12))


async def test_writers_of_one_moment_share_one_flush(log: WatchedLog, writer: GroupCommit) -> None:
    await asyncio.gather(*start(writer, appends(10)))
    assert log.groups == [10]


async def test_a_writer_that_comes_later_gets_a_flush_of_its_own(
    log: WatchedLog, writer: GroupCommit
) -> None:
    for append in appends(3):
        await writer.append(append)
    assert log.groups == [1, 1, 1]


async def test_a_group_has_a_largest_number_of_appends(
    log: WatchedLog, writer: GroupCommit
) -> None:
    await asyncio.gather(*start(writer, appends(2 * GROUP_APPENDS_MAX + 3)))
    assert log.groups == [GROUP_APPENDS_MAX, GROUP_APPENDS_MAX, 3]


async def test_a_group_has_a_largest_number_of_events(log: WatchedLog, writer: GroupCommit) -> None:
    per_append = 500
    fitting = GROUP_EVENTS_MAX // per_append
    await asyncio.gather(*start(writer, appends(fitting + 2, per_append)))
    assert log.groups == [fitting, 2]


async def test_a_refusal_is_heard_by_its_own_caller_only(
    log: WatchedLog, writer: GroupCommit
) -> None:
    group = appends(3)
    await log.append([group[1]])

    outcomes = await asyncio.gather(*start(writer, group), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [Appended, VersionConflict, Appended]
    assert log.groups == [1, 3]


async def test_a_refusal_is_raised(log: WatchedLog, writer: GroupCommit) -> None:
    (append,) = appends(1)
    await log.append([append])
    with pytest.raises(VersionConflict):
        await writer.append(append)


async def test_a_log_that_does_not_answer_fails_the_whole_group_and_no_other(
    log: WatchedLog, writer: GroupCommit
) -> None:
    group = appends(4)
    log.failures = [LogUnavailable("the disk is full")]
    log.door.clear()
    failing = start(writer, group[:2])
    await log.knocked.wait()
    waiting = await queue(writer, group[2:])
    log.door.set()

    refused = await asyncio.gather(*failing, return_exceptions=True)
    landed = await asyncio.gather(*waiting)

    assert [str(error) for error in refused] == ["the disk is full"] * 2
    assert [outcome.version for outcome in landed] == [1, 1]
    assert await log.read(group[0].execution_id) == []


@pytest.mark.parametrize("error", [InvariantBroken("our bug"), ZeroDivisionError("worse")])
async def test_an_unforeseen_error_leaves_nobody_waiting(
    log: WatchedLog, writer: GroupCommit, error: Exception
) -> None:
    group = appends(5)
    log.failures = [error]
    log.door.clear()
    in_flight = start(writer, group[:2])
    await log.knocked.wait()
    queued = await queue(writer, group[2:4])
    log.door.set()

    async with asyncio.timeout(PATIENCE_SECONDS):
        outcomes = await asyncio.gather(*in_flight, *queued, return_exceptions=True)

    assert outcomes == [error] * 4
    assert await writer.append(group[4]) == Appended(1, 1, 1)


async def test_a_log_that_answers_for_too_few_leaves_nobody_waiting(
    log: WatchedLog, writer: GroupCommit
) -> None:
    log.answers_lost = 1
    async with asyncio.timeout(PATIENCE_SECONDS):
        outcomes = await asyncio.gather(*start(writer, appends(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Appended, Appended, ValueError]


async def test_a_caller_that_goes_away_takes_nobody_with_it(
    log: WatchedLog, writer: GroupCommit
) -> None:
    group = appends(4)
    log.door.clear()
    in_flight = start(writer, group[:2])
    await log.knocked.wait()
    queued = await queue(writer, group[2:])
    in_flight[0].cancel()
    queued[0].cancel()
    log.door.set()

    outcomes = await asyncio.gather(*in_flight, *queued, return_exceptions=True)

    kinds = [type(outcome) for outcome in outcomes]
    assert kinds == [asyncio.CancelledError, Appended, asyncio.CancelledError, Appended]
    # What was asked for may still be done; only the answer is lost.
    assert [len(await log.read(append.execution_id)) for append in group] == [1, 1, 1, 1]


async def test_draining_waits_for_everything_that_was_queued(
    log: WatchedLog, writer: GroupCommit
) -> None:
    group = appends(3)
    log.door.clear()
    first = start(writer, group[:1])
    await log.knocked.wait()
    rest = await queue(writer, group[1:])
    draining = asyncio.create_task(writer.drain())
    await asyncio.wait([draining], timeout=0)
    assert not draining.done()

    log.door.set()
    await draining

    assert log.groups == [1, 2]
    assert len(await log.tail()) == 3
    await asyncio.gather(*first, *rest)


async def test_draining_a_writer_at_rest_returns_at_once(writer: GroupCommit) -> None:
    await writer.drain()


async def test_a_process_that_stops_leaves_no_caller_waiting(
    log: WatchedLog, writer: GroupCommit
) -> None:
    log.door.clear()
    callers = start(writer, appends(2))
    await log.knocked.wait()
    others = asyncio.all_tasks() - {asyncio.current_task(), *callers}
    for task in others:
        task.cancel()

    async with asyncio.timeout(PATIENCE_SECONDS):
        outcomes = await asyncio.gather(*callers, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 2
