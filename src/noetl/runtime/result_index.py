"""Which results an execution has: their names, where they lie, and how large they are.

Every result has a name. Small ones lie in their event and nowhere else; those of a pipeline's
tasks are parts of the step's result, unless an effect had to be recorded before the next one.
"""

from collections import deque
from collections.abc import Iterable
from typing import Literal

import msgspec

from noetl.domain.events import (
    CallDone,
    CallPartial,
    CommandClaimed,
    CommandCompleted,
    CommandFailed,
    CommandIssued,
    FrameCommitted,
    FrameDispatched,
    LoopDone,
    LoopStarted,
    ShardDone,
    ShardEnqueued,
    StageOpened,
    StepExited,
)
from noetl.domain.events.envelope import Envelope, RecordedEvent
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.result_name import DatasetName, ResultName
from noetl.domain.payload import is_payload_uri
from noetl.domain.work import holder_of
from noetl.kernel import canonical_json
from noetl.kernel.ids import CommandId, EventId, FrameId, LoopId, StageId, StepName
from noetl.kernel.instant import Instant
from noetl.templates.recorded import ORDER

Tier = Literal["inline", "part", "feather", "json", "dataset", "payload"]
"""In its event, in the result of its step, or outside: by encoding, by frames, or by digest."""

Kind = Literal["step", "task", "loop", "frame", "chunk"]


class ResultEntry(msgspec.Struct, frozen=True, kw_only=True):
    uri: str
    kind: Kind
    step: StepName
    visit: int = 1
    task: str | None = None
    run: int = 1
    frame: int | None = None  # its ordinal in the stage
    status: str
    tier: Tier
    byte_length: int | None = None  # None: it is a part of another, or its store did not say
    row_count: int | None = None
    media_type: str | None = None
    sha256: str | None = None
    parent: str | None = None  # the name of the result before it in its pipeline
    event_id: EventId
    time: Instant


def results_of(events: Iterable[RecordedEvent]) -> list[ResultEntry]:
    index = ResultIndex()
    return [entry for event in events for entry in index.add(event)]


class Work(msgspec.Struct):
    """A command or a frame, and who holds it."""

    step: StepName
    visit: int
    holder: int = 1
    ordinal: int = 0
    visit_attempt: int = 1


class ResultIndex:
    """Told event by event, so that a long log needs no more memory than what is open in it."""

    def __init__(self) -> None:
        self._commands: dict[CommandId, Work] = {}
        self._called: dict[CommandId, list[ResultEntry]] = {}
        self._loops: dict[LoopId, int] = {}
        self._stages: dict[StageId, tuple[Work, LoopId | None]] = {}
        self._frames: dict[FrameId, Work] = {}

    def add(self, recorded: RecordedEvent) -> list[ResultEntry]:
        """The results that this event tells of, oldest first."""
        envelope = recorded.envelope
        match recorded.event:
            case CallDone() as done if done.task is not None:
                return self._call(done, done.task, envelope)
            case CallPartial(result=Result(reference=ResultReference())) as part:
                return [self._chunk(part, envelope)]
            case CommandCompleted() | CommandFailed() as ended:
                return self._command(ended.result, envelope)
            case FrameCommitted() as committed:
                outcomes = {"outcomes": committed.outcomes}
                result = Result(status="ok", reference=committed.output_ref, context=outcomes)
                return self._frame(result, int(committed.row_count), envelope)
            case ShardDone(result=Result() as result):
                return self._frame(result, 1, envelope)
            case LoopDone(result=Result() as result) as loop:
                return [_of_loop(loop, result, envelope)]
            case StepExited(result=Result() as result) as exited:
                work = Work(exited.step, exited.visit)
                return [_entry(_name(work, envelope), result, envelope)]
            case event:
                self._note(event, envelope)
                return []

    def _note(self, event: object, envelope: Envelope) -> None:
        command = envelope.command_id or CommandId("")
        stage = envelope.stage_id or StageId("")
        match event:
            case CommandIssued(step=step, visit=visit, attempt=attempt):
                self._commands[command] = Work(step, visit, visit_attempt=attempt)
            case CommandClaimed(claim=claim) if command in self._commands:
                work = self._commands[command]
                work.holder = holder_of(claim, work.visit_attempt)
            case LoopStarted(loop_id=loop_id, attempt=attempt):
                self._loops[loop_id] = attempt
            case StageOpened(step=step, visit=visit, loop_id=loop_id):
                self._stages[stage] = (Work(step, visit), loop_id)
            case FrameDispatched(ordinal=ordinal, attempt=attempt) if stage in self._stages:
                self._hand_out(envelope, ordinal, attempt)
            case ShardEnqueued(iter_index=ordinal, attempt=int(attempt)) if stage in self._stages:
                self._hand_out(envelope, ordinal, attempt)

    def _hand_out(self, envelope: Envelope, ordinal: int, attempt: int) -> None:
        work, loop_id = self._stages[envelope.stage_id or StageId("")]
        tries = self._loops.get(loop_id, 1) if loop_id is not None else 1
        holder = holder_of(attempt, tries)
        frame = envelope.frame_id or FrameId("")
        self._frames[frame] = Work(work.step, work.visit, holder, ordinal)

    def _call(self, done: CallDone, task: str, envelope: Envelope) -> list[ResultEntry]:
        command = envelope.command_id or CommandId("")
        work = self._commands.get(command, Work(done.step, done.visit))
        entry = _entry(_name(work, envelope, task, done.run), done.result, envelope)
        self._called.setdefault(command, []).append(entry)
        # Whether it is a task's own result or the step's is known when the command ends.
        return []

    def _chunk(self, part: CallPartial, envelope: Envelope) -> ResultEntry:
        work = self._commands.get(envelope.command_id or CommandId(""))
        work = work or Work(part.step, part.visit)
        name = _name(work, envelope, part.task, part.run)
        return _entry(name, part.result, envelope, kind="chunk")

    def _command(self, result: Result | None, envelope: Envelope) -> list[ResultEntry]:
        command = envelope.command_id or CommandId("")
        work = self._commands.pop(command, None)
        called = self._called.pop(command, [])
        order = [] if result is None else order_of(result)
        if work is None:
            return called
        if result is None:
            return called
        whole = _entry(_name(work, envelope), result, envelope)
        if not order:
            return [*(entry for entry in called if entry.run > 1), whole]
        return [*_with_parts(called, order, work, envelope), whole]

    def open_calls(self) -> list[ResultEntry]:
        """Of commands that have not ended."""
        return [entry for called in self._called.values() for entry in called]

    def _frame(self, result: Result, row_count: int, envelope: Envelope) -> list[ResultEntry]:
        work = self._frames.pop(envelope.frame_id or FrameId(""), None)
        if work is None:
            return []
        entry = _entry(_name(work, envelope), result, envelope, kind="frame")
        return [msgspec.structs.replace(entry, frame=work.ordinal, row_count=row_count)]


def order_of(result: Result) -> list[str]:
    """The tasks of a pipeline in the order they ended; of a lone tool none."""
    context = result.context if result.reference is None else result.context.get("extracted", {})
    order = context.get(ORDER, [])
    return [str(task) for task in order] if isinstance(order, list) else []


def _with_parts(
    called: list[ResultEntry], order: list[str], work: Work, envelope: Envelope
) -> list[ResultEntry]:
    """Tasks without a call of their own are known by the order that the step's result keeps."""
    rank = {task: number for number, task in enumerate(order)}
    with_call = {entry.task for entry in called}
    parts = deque(task for task in rank if task not in with_call)
    tasks: list[ResultEntry | str] = []
    for entry in called:
        while parts and rank[parts[0]] < rank.get(entry.task or "", -1):
            tasks.append(parts.popleft())
        tasks.append(entry)
    entries: list[ResultEntry] = []
    for each in (*tasks, *parts):
        own = each if isinstance(each, ResultEntry) else _part(each, work, envelope)
        before = entries[-1].uri if entries else None
        entries.append(msgspec.structs.replace(own, parent=own.parent or before))
    return entries


def _part(task: str, work: Work, envelope: Envelope) -> ResultEntry:
    return _entry(_name(work, envelope, task), Result(status="ok"), envelope)


def _of_loop(loop: LoopDone, result: Result, envelope: Envelope) -> ResultEntry:
    name = DatasetName(
        tenant=envelope.tenant_id,
        project=envelope.organization_id,
        execution_id=envelope.execution_id,
        step=loop.step,
        visit=loop.visit,
    )
    entry = _entry(name, result, envelope, kind="loop")
    return msgspec.structs.replace(entry, row_count=entry.row_count or loop.stats.total)


def _name(work: Work, envelope: Envelope, task: str | None = None, run: int = 1) -> ResultName:
    return ResultName(
        tenant=envelope.tenant_id,
        project=envelope.organization_id,
        execution_id=envelope.execution_id,
        step=work.step,
        task=task,
        run=run,
        frame=work.ordinal,
        attempt=work.holder,
        visit=work.visit,
    )


def _entry(
    name: ResultName | DatasetName, result: Result, envelope: Envelope, kind: Kind | None = None
) -> ResultEntry:
    reference = result.reference
    task = name.task if isinstance(name, ResultName) else None
    known = ResultReference(type="object_store", uri=name.uri) if reference is None else reference
    is_here = reference is None and bool(result.context)
    return ResultEntry(
        uri=known.uri,
        kind=kind or ("step" if task is None else "task"),
        step=name.step,
        visit=name.visit,
        task=task,
        run=name.run if isinstance(name, ResultName) else 1,
        status=result.status,
        tier=_tier(result, kind),
        byte_length=len(canonical_json.encode(result.context)) if is_here else known.byte_length,
        row_count=known.row_count,
        media_type=known.media_type,
        sha256=known.sha256,
        parent=None if result.parent_ref is None else result.parent_ref.ref_id,
        event_id=envelope.event_id,
        time=envelope.event_time,
    )


def _tier(result: Result, kind: Kind | None) -> Tier:
    reference = result.reference
    if reference is None:
        return "inline" if result.context else "part"
    if is_payload_uri(reference.uri):
        return "payload"
    if kind == "loop":
        return "dataset"
    return "feather" if "arrow" in (reference.media_type or "") else "json"
