"""What is said at a work desk: workers, the ends of their work, and playbooks to get work from."""

from collections.abc import Awaitable
from typing import Any

import msgspec

from noetl.domain.chunk import Chunk, ChunkTold
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import Failure
from noetl.domain.work import (
    ChildRequest,
    ClaimedRows,
    CommandReport,
    CommandWork,
    FrameReport,
    FrameStart,
    FrameWork,
    Heartbeat,
    LeaseAnswer,
    Report,
    Reported,
    RowOutcome,
    Work,
    WorkerIdentity,
    heartbeat_of,
)
from noetl.kernel.errors import ClaimLost
from noetl.kernel.ids import WorkerId
from noetl.templates.recorded import inline_result

CHAIN = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: chain, path: desk/chain}
workflow:
  - step: first
    tool: {kind: noop}
    next: {arcs: [{step: second}]}
  - step: second
    tool: {kind: noop}
"""

ROWS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: rows, path: desk/rows}
workload: {count: 3}
workflow:
  - step: each
    loop:
      in: "{{ range(workload.count) | list }}"
      iterator: item
      spec: {mode: parallel, max_in_flight: 100, frame: {max_rows: 1, row_concurrency: 1}}
    tool: {kind: noop}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: noop}
"""

SHARDS = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shards, path: desk/shards}
workload: {count: 3}
workflow:
  - step: each
    loop:
      in: "{{ range(workload.count) | list }}"
      iterator: item
      spec: {mode: fanout, max_in_flight: 100}
    tool: {kind: noop}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: noop}
"""

CURSOR = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: cursor, path: desk/cursor}
workload: {count: 3}
workflow:
  - step: each
    loop:
      cursor: {kind: sqlite, database: ":memory:", claim: "SELECT 1 AS id"}
      iterator: item
      spec: {mode: cursor, max_in_flight: "{{ workload.count }}", frame: {max_rows: 2}}
    tool: {kind: noop}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {kind: noop}
"""


def worker(name: str = "worker", *, boot: str = "1", slots: int = 100) -> WorkerIdentity:
    return WorkerIdentity(worker_id=WorkerId(name), boot_id=boot, slots=slots)


def ended(work: Work, by: WorkerIdentity, value: Any = None) -> Report:
    """The report of work that went well."""
    if isinstance(work, CommandWork):
        return CommandReport(
            execution_id=work.execution_id,
            command_id=work.command_id,
            claim=work.claim,
            worker_id=by.worker_id,
            result=inline_result(value),
        )
    rows = range(work.first_index, work.first_index + work.row_count)
    return FrameReport(
        execution_id=work.execution_id,
        stage_id=work.stage_id,
        frame_id=work.frame_id,
        attempt=work.attempt,
        worker_id=by.worker_id,
        row_count=work.row_count,
        outcomes=tuple(RowOutcome(index=row, status="ok", value=value) for row in rows),
    )


def started(work: FrameWork, by: WorkerIdentity, rows: list[Any], name: str = "1") -> FrameStart:
    """A frame of a cursor has claimed these, in a transaction of this name."""
    return FrameStart(
        execution_id=work.execution_id,
        stage_id=work.stage_id,
        frame_id=work.frame_id,
        attempt=work.attempt,
        worker_id=by.worker_id,
        claimed=ClaimedRows(transaction=name, row_count=len(rows), rows=rows),
    )


def with_rows(work: FrameWork, answer: LeaseAnswer, rows: list[Any]) -> FrameWork:
    """What a holder works on once its claim is recorded."""
    first = answer.first_index or 0
    return msgspec.structs.replace(work, first_index=first, row_count=len(rows), rows=rows)


def failed(work: Work, by: WorkerIdentity, failure: Failure) -> Report:
    return msgspec.structs.replace(ended(work, by), error=failure)


def beat(work: Work, by: WorkerIdentity) -> Heartbeat:
    return heartbeat_of(work, by.worker_id)


def claim_of(work: Work) -> int:
    return work.claim if isinstance(work, CommandWork) else work.attempt


def name_of(work: Work) -> str:
    return work.command_id if isinstance(work, CommandWork) else work.frame_id


def end_of(work: Work) -> str:
    """The event that says that the work went well."""
    if isinstance(work, CommandWork):
        return "command.completed"
    return "loop.shard.done" if work.mode == "fanout" else "frame.committed"


def types(events: list[RecordedEvent]) -> list[str]:
    return [recorded.envelope.event_type for recorded in events]


def count(events: list[RecordedEvent], event_type: str) -> int:
    return types(events).count(event_type)


async def said_to(asked: Awaitable[Reported]) -> str:
    """What became of a report: `recorded`, `duplicate` or `lost`."""
    try:
        return "duplicate" if (await asked).duplicate else "recorded"
    except ClaimLost:
        return "lost"


def chunk_of(work: Work, index: int) -> ChunkTold:
    assert isinstance(work, CommandWork), "only commands have chunks"
    chunk = Chunk(task="call", index=index, has_more=True, result=inline_result({"page": index}))
    return ChunkTold(
        execution_id=work.execution_id, command_id=work.command_id, claim=work.claim, chunk=chunk
    )


def child_of(work: Work, path: str) -> ChildRequest:
    step, visit = work.step, work.visit
    if isinstance(work, CommandWork):
        return ChildRequest(
            execution_id=work.execution_id,
            command_id=work.command_id,
            cycle=f"{work.execution_id}/{step}/{visit}/0/call/1",
            path=path,
        )
    return ChildRequest(
        execution_id=work.execution_id,
        stage_id=work.stage_id,
        cycle=f"{work.execution_id}/{step}/{visit}/{work.first_index}/call/1",
        path=path,
    )
