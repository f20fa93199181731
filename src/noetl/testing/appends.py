"""Appends for tests: sealed, placed, and landed or refused."""

from noetl.domain.events import CommandIssued, StepEntered
from noetl.domain.events.envelope import Draft
from noetl.domain.log import EMPTY_STREAM, Append, Appended, StreamHead
from noetl.kernel.errors import LogError
from noetl.kernel.ids import CommandId, ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.ports.event_log import EventLog
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import seal

FIRST, SECOND, THIRD = execution_ids(3)
STEP = StepName("load")


def drafts(count: int, execution: ExecutionId = FIRST) -> list[Draft]:
    history = History(execution)
    return [history.draft(StepEntered(step=STEP, visit=visit + 1)) for visit in range(count)]


def append_of(
    events: list[Draft], head: StreamHead = EMPTY_STREAM, execution: ExecutionId = FIRST
) -> Append:
    sealed = seal(events, head, source_of(execution))
    return Append(DEFAULT_SCOPE, execution, head.version, sealed)


async def land(log: EventLog, append: Append) -> Appended:
    (outcome,) = await log.append([append])
    assert isinstance(outcome, Appended), outcome
    return outcome


async def refused(log: EventLog, append: Append) -> LogError:
    (outcome,) = await log.append([append])
    assert isinstance(outcome, LogError), outcome
    return outcome


def head_after(append: Append) -> StreamHead:
    last = append.events[-1].envelope
    return StreamHead(last.stream_version, last.event_id)


def issued(history: History, command: str) -> Draft:
    return history.draft(
        CommandIssued(step=STEP, tool="noop"), command_id=CommandId(f"{FIRST}/{command}")
    )


def keyed(history: History, key: str) -> Draft:
    return history.draft(StepEntered(step=STEP), idempotency_key=key)
