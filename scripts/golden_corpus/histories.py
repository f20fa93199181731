"""Whole histories for the golden corpus: together they take every event of the catalogue."""

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from noetl.domain.events import (
    BatchAccepted,
    BatchCompleted,
    BatchFailed,
    BatchProcessing,
    CallDone,
    CallFailed,
    CallPartial,
    CheckpointCommitted,
    CommandCancelled,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandHeartbeat,
    CommandIssued,
    CommandStarted,
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    PlaybookCompleted,
    StepEntered,
    StepExited,
    StepSkipped,
    WorkerCapacity,
)
from noetl.domain.events.envelope import Draft
from noetl.domain.events.values import Failure, Result
from noetl.domain.log import EMPTY_STREAM, SealedEvent, StoredEvent
from noetl.kernel import canonical_json
from noetl.kernel.ids import CommandId, EventId, StepName, WorkerId
from noetl.kernel.instant import plus
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.testing.histories import (
    WORKER,
    History,
    begin,
    command_cycle,
    execution_ids,
    finish,
    frame_output,
    source_of,
)
from noetl.wire.codec import seal
from scripts.golden_corpus.business_objects import business_objects, changed_order
from scripts.golden_corpus.chunks import chunks
from scripts.golden_corpus.handed_back import handed_back
from scripts.golden_corpus.loops import fanout, frames
from scripts.golden_corpus.near_and_far import near_and_far
from scripts.golden_corpus.shards import held_shards
from scripts.golden_corpus.whole_run import whole_run

FIRST, SECOND = execution_ids(2)
FETCH, STORE = StepName("fetch"), StepName("store")
OTHER_WORKER = WorkerId("worker-2")
INGEST_DELAY_SECONDS = 0.005
TIMEOUT = Failure(kind="timeout", message="no answer after 30 s", retryable=True, code="408")


class Stream(NamedTuple):
    """One execution: its drafts, its owner, and which events become strangers to this build."""

    drafts: Iterable[Draft]
    history: History
    scope: Scope = DEFAULT_SCOPE
    unknown_types: dict[type, str] = {}  # noqa: RUF012 a NamedTuple's default is never changed


def rows(streams: list[Stream]) -> list[StoredEvent]:
    """The streams as a log holds them: an event of each in turn, in the order of positions."""
    sealed = [_sealed(stream) for stream in streams]
    in_turn = [event for turn in zip_longest(*sealed) for event in turn if event is not None]
    return [_stored(event, position) for position, event in enumerate(in_turn, start=1)]


def _sealed(stream: Stream) -> list[SealedEvent]:
    source = source_of(stream.history.execution, stream.scope)
    sealed = seal(list(stream.drafts), EMPTY_STREAM, source)
    return [
        _estranged(event, stream.unknown_types[type(event.event)])
        if type(event.event) in stream.unknown_types
        else event
        for event in sealed
    ]


def _estranged(sealed: SealedEvent, event_type: str) -> SealedEvent:
    """The same event as a build might write it that knows more types than this one."""
    plain: dict[str, Any] = msgspec.json.decode(sealed.canonical)
    names = {"event_type": event_type, "schema_name": f"noetl.{event_type}", "schema_version": 3}
    canonical = canonical_json.encode(plain | names | {"a_field_to_come": [1, None]})
    checksum = canonical_json.sha256_hex(canonical)
    return msgspec.structs.replace(sealed, canonical=canonical, checksum=checksum)


def _stored(sealed: SealedEvent, position: int) -> StoredEvent:
    envelope = sealed.envelope
    return StoredEvent(
        envelope.execution_id,
        envelope.stream_version,
        position,
        plus(envelope.event_time, seconds=INGEST_DELAY_SECONDS),
        sealed.canonical,
        sealed.checksum,
        canonical_json.encode(sealed.annotations) if sealed.annotations else None,
    )


def _single_command(history: History) -> Iterator[Draft]:
    yield from begin(history)
    yield from command_cycle(history, FETCH)
    yield from finish(history, FETCH)


def _two_scopes() -> list[Stream]:
    """Two tenants change an object of the same name; nothing of one is seen by the other."""
    streams = []
    for execution, scope in ((FIRST, DEFAULT_SCOPE), (SECOND, Scope("acme", "research & co"))):
        history = History(execution)
        streams.append(Stream(_one_object(history, scope), history, scope))
    return streams


def _one_object(history: History, scope: Scope) -> Iterator[Draft]:
    yield from begin(history)
    yield from changed_order(history, "new", {"owner": scope.tenant_id})
    yield from finish(history, FETCH)


def _retry_with_takeover(history: History) -> Iterator[Draft]:
    yield from begin(history)
    yield history.draft(StepEntered(step=FETCH))
    yield from _lost_lease(history, CommandId(f"{FIRST}/fetch/1/0/1"))
    yield from _second_try(history, CommandId(f"{FIRST}/fetch/1/0/2"))
    yield from finish(history, FETCH)


def _lost_lease(history: History, command: CommandId) -> Iterator[Draft]:
    """The first worker goes quiet, another takes over, and what the first says changes nothing."""

    def draft(event: Any, **envelope: Any) -> Draft:
        return history.draft(event, command_id=command, **envelope)

    lease = history.lease_end()
    yield draft(CommandIssued(step=FETCH, tool="http", attempts_max=3, placement="eu"))
    yield draft(CommandClaimed(worker_id=WORKER, claim=1, lease_until=lease, boot_id="a1"))
    yield draft(CommandStarted(worker_id=WORKER, claim=1))
    yield draft(CommandHeartbeat(worker_id=WORKER, claim=1, lease_until=plus(lease, seconds=60)))
    yield draft(CommandClaimed(worker_id=OTHER_WORKER, claim=2, lease_until=plus(lease, seconds=9)))
    yield draft(CommandHeartbeat(worker_id=WORKER, claim=1, lease_until=plus(lease, seconds=90)))
    yield draft(CommandStarted(worker_id=OTHER_WORKER, claim=2))
    yield draft(CallFailed(step=FETCH, error=TIMEOUT, task="get", duration_ms=30_000))
    yield draft(CommandFailed(worker_id=OTHER_WORKER, claim=2, error=TIMEOUT))


def _second_try(history: History, command: CommandId) -> Iterator[Draft]:
    """The next attempt reads its result in chunks, while a person pauses and resumes."""

    def draft(event: Any, **envelope: Any) -> Draft:
        return history.draft(event, command_id=command, **envelope)

    part = Result(status="ok", reference=frame_output(FIRST, FETCH, 0, 20))
    whole = Result(status="ok", reference=frame_output(FIRST, FETCH, 1, 40))
    brief = Result(status="ok", context={"rows": 40})
    locator = {"worker_locator": "noetl://tenant/default/worker/worker-1"}
    yield draft(CommandIssued(step=FETCH, tool="http", attempt=2, attempts_max=3))
    lease = history.lease_end()
    yield draft(CommandClaimed(worker_id=WORKER, claim=1, lease_until=lease), annotations=locator)
    yield draft(CommandStarted(worker_id=WORKER, claim=1))
    yield history.draft(ExecutionPaused(reason="quota"))
    yield draft(CallPartial(step=FETCH, chunk_index=0, has_more=True, result=part))
    yield history.draft(ExecutionResumed())
    yield draft(CallPartial(step=FETCH, chunk_index=1, has_more=False, result=brief))
    yield draft(CallDone(step=FETCH, task="get", result=brief), idempotency_key="fetch/get/2")
    yield draft(CommandCompleted(worker_id=WORKER, claim=1, result=whole, duration_ms=812))
    yield history.draft(StepExited(step=FETCH, status="ok", result=brief))


def _visits(history: History) -> Iterator[Draft]:
    """A step is entered again and again over arcs, as pagination does; another is skipped."""
    yield from begin(history)
    for visit in (1, 2):
        yield from command_cycle(history, FETCH, visit, {"page": visit})
    yield history.draft(StepEntered(step=FETCH, visit=3, arrived_from=(FETCH,)))
    yield history.draft(StepEntered(step=FETCH, visit=2, arrived_from=(FETCH,)))
    yield history.draft(StepSkipped(step=STORE, reason="nothing to store"))
    yield from finish(history, FETCH)


def _cancelled_with_late_events(history: History) -> Iterator[Draft]:
    """One command is called back, the other stays open; then come reports that are too late."""
    yield from begin(history)
    fetch, store = (CommandId(f"{FIRST}/{step}/1/0/1") for step in (FETCH, STORE))
    for step, command in ((FETCH, fetch), (STORE, store)):
        yield history.draft(StepEntered(step=step))
        yield history.draft(CommandIssued(step=step, tool="sql"), command_id=command)
    claimed = CommandClaimed(worker_id=WORKER, claim=1, lease_until=history.lease_end())
    yield history.draft(claimed, command_id=fetch)
    yield history.draft(ExecutionCancelled(reason="asked by a person"))
    yield history.draft(CommandCancelled(reason="execution cancelled"), command_id=fetch)
    yield history.draft(CommandCompleted(claim=1), command_id=fetch)
    yield history.draft(CallDone(step=FETCH, result=Result(status="ok")), command_id=fetch)
    yield history.draft(ExecutionPaused())
    yield history.draft(StepExited(step=FETCH, status="cancelled", error=TIMEOUT))
    yield from begin(history)
    yield from finish(history, STORE)


def _unknown_events() -> list[Stream]:
    history = History(FIRST)
    strangers: dict[type, str] = {StepSkipped: "step.postponed", PlaybookCompleted: "playbook.sold"}
    return [Stream(_services(history), history, unknown_types=strangers)]


def _services(history: History) -> Iterator[Draft]:
    """Facts of services and events of a build to come: counted, and nothing else."""
    yield from begin(history)
    yield history.draft(BatchAccepted(request_id="r1", count=2))
    yield history.draft(BatchProcessing(request_id="r1"))
    yield history.draft(BatchCompleted(request_id="r1", count=2))
    yield history.draft(BatchFailed(request_id="r2", error=TIMEOUT))
    yield history.draft(StepSkipped(step=FETCH, reason="this build cannot read it"))
    last = EventId(history.new_id())
    yield history.draft(CheckpointCommitted(epoch_id="fetch@1", last_event_id=last))
    yield history.draft(WorkerCapacity(worker_id=WORKER, capacity=8, in_use=3))
    yield history.draft(StepSkipped(step=STORE))
    yield from finish(history, FETCH)


HISTORIES: dict[str, Callable[[], list[Stream]]] = {
    "single_command": lambda: _alone(_single_command),
    "two_scopes": _two_scopes,
    "retry_with_takeover": lambda: _alone(_retry_with_takeover),
    "visits": lambda: _alone(_visits),
    "cancelled_with_late_events": lambda: _alone(_cancelled_with_late_events),
    "unknown_events": _unknown_events,
    "frames_with_an_abandoned_one": lambda: _alone(frames),
    "fanout_partial": lambda: _alone(fanout),
    "fanout_with_holders": lambda: _alone(held_shards),
    "business_objects": lambda: _alone(business_objects),
    "whole_run": lambda: _alone(whole_run),
    "chunks_with_a_takeover": lambda: _alone(chunks),
    "work_handed_back": lambda: _alone(handed_back),
    "near_and_far": lambda: _alone(near_and_far),
}


def _alone(drafts: Callable[[History], Iterator[Draft]]) -> list[Stream]:
    history = History(FIRST)
    return [Stream(drafts(history), history)]
