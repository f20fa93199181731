"""Appends for tests, and the questions that every crash test asks of a log afterwards."""

from noetl.adapters.postgres.event_log import PostgresEventLog
from noetl.domain.events import StepEntered
from noetl.domain.events.envelope import Draft
from noetl.domain.log import EMPTY_STREAM, Append, StoredEvent, StreamHead
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.testing.histories import History, source_of
from noetl.wire.codec import open_stored, seal

STEP = StepName("load")


def sealed_append(
    execution: ExecutionId,
    drafts: list[Draft],
    head: StreamHead = EMPTY_STREAM,
    scope: Scope = DEFAULT_SCOPE,
) -> Append:
    return Append(scope, execution, head.version, seal(drafts, head, source_of(execution, scope)))


def steps(history: History, count: int) -> list[Draft]:
    return [history.draft(StepEntered(step=STEP, visit=visit + 1)) for visit in range(count)]


async def whole_log(log: PostgresEventLog) -> list[StoredEvent]:
    events: list[StoredEvent] = []
    while page := await log.tail(after_position=events[-1].position if events else 0):
        events += page
    return events


def check_chains(events: list[StoredEvent]) -> None:
    """Nothing twice, positions rising, and every stream dense, linked and unbroken in time."""
    positions = [event.position for event in events]
    assert positions == sorted(set(positions))
    heads: dict[str, StreamHead] = {}
    times: dict[str, str] = {}
    for event in events:
        envelope = open_stored(event).envelope
        head = heads.get(event.execution_id, EMPTY_STREAM)
        assert event.stream_version == head.version + 1
        assert envelope.prev_event_id == head.last_event_id
        assert event.ingest_time >= times.get(event.execution_id, "")
        heads[event.execution_id] = StreamHead(event.stream_version, envelope.event_id)
        times[event.execution_id] = event.ingest_time
