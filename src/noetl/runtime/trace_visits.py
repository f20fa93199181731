"""Visits of steps, looked at closely: their tasks, their loops by numbers, and what came out."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from noetl.domain.events import (
    CallDone,
    CallFailed,
    ChildStarted,
    CommandIssued,
    FrameAbandoned,
    FrameCommitted,
    FrameDispatched,
    FrameFailed,
    LoopDone,
    LoopStarted,
    ShardDone,
    ShardEnqueued,
    ShardFailed,
    StageOpened,
    StepEntered,
    StepExited,
    StepSkipped,
)
from noetl.domain.events.envelope import Envelope, RecordedEvent
from noetl.domain.events.values import Failure
from noetl.kernel.ids import CommandId, ExecutionId, StageId, StepName
from noetl.kernel.instant import Instant
from noetl.runtime.result_index import ResultEntry, ResultIndex

TASKS_SHOWN_MAX = 200
CHILDREN_SHOWN_MAX = 100


class Place(NamedTuple):
    step: StepName
    visit: int


class TracedTask(msgspec.Struct, kw_only=True):
    """One run of a task that was recorded, or a task that is a part of the step's result."""

    task: str
    run: int = 1
    result: ResultEntry | None = None  # None: it failed, or has not ended
    effect: str | None = None
    tries: int = 1
    error: Failure | None = None


class TracedLoop(msgspec.Struct, kw_only=True):
    """A loop by its numbers: its rows are in the outputs of its frames."""

    mode: str
    collection: str | None = None  # where its items lie, when they were many
    rows: int | None = None  # None: a cursor does not know
    frames: int = 0  # handed out, those that were lost included
    frames_committed: int = 0
    frames_lost: int = 0
    rows_done: int = 0
    rows_failed: int = 0


class TracedVisit(msgspec.Struct, kw_only=True):
    step: StepName
    visit: int
    distance: int = 0  # arcs between it and the visit that was asked about
    status: str = "RUNNING"
    entered_at: Instant | None = None
    exited_at: Instant | None = None
    result: ResultEntry | None = None
    tasks: list[TracedTask] = []  # in the order they ended, those without a result last
    task_count: int = 0
    loop: TracedLoop | None = None
    children: list[ExecutionId] = []  # sub-playbooks that it asked for, the first ones
    parents: list[str] = []  # names of the results that it was entered with
    entered_from: list[dict[str, Any]] = []  # `{step, visit}`: the other ends of its arcs
    error: Failure | None = None


class VisitTales:
    """What the log tells of some visits; of all the others nothing is kept."""

    def __init__(self, wanted: Iterable[Place], named: Iterable[Place] = ()) -> None:
        """Of the `named` ones the names of their results are kept."""
        self._visits = {place: TracedVisit(step=place.step, visit=place.visit) for place in wanted}
        self._index = ResultIndex()
        self._named = frozenset(named)
        self._uris: dict[Place, str] = {}
        self._commands: dict[CommandId, Place] = {}
        self._stages: dict[StageId, Place] = {}

    def visit(self, place: Place, distance: int, parents: Iterable[Place]) -> TracedVisit:
        visit = self._visits[place]
        for entry in self._index.open_calls():
            if Place(entry.step, entry.visit) == place:
                self._result(visit, entry)
        arcs = list(parents)
        return msgspec.structs.replace(
            visit,
            tasks=sorted(visit.tasks, key=lambda task: task.result is None),
            distance=distance,
            parents=[self._uris[each] for each in arcs if each in self._uris],
            entered_from=[{"step": each.step, "visit": each.visit} for each in arcs],
        )

    def add(self, recorded: RecordedEvent) -> None:
        for entry in self._index.add(recorded):
            place = Place(entry.step, entry.visit)
            if entry.kind in ("step", "loop") and place in self._named:
                self._uris[place] = entry.uri
            if place in self._visits:
                self._result(self._visits[place], entry)
        match recorded.event:
            case StepEntered() | StepExited() | StepSkipped() as event:
                self._step(event, recorded.envelope)
            case CallDone() | CallFailed() as call if call.task is not None:
                self._call(call, call.task)
            case LoopStarted() | LoopDone() as loop:
                self._loop(loop)
            case event:
                self._work(event, recorded.envelope)

    def _result(self, visit: TracedVisit, entry: ResultEntry) -> None:
        if entry.kind in ("step", "loop"):
            visit.result = entry
            for lone in visit.tasks:  # the result of a lone tool is the step's
                if lone.result is None and lone.error is None:
                    lone.result = entry
        elif entry.kind == "task":
            task = self._task(visit, entry.task or "", entry.run)
            if task is not None:
                task.result = entry
                visit.tasks = [*(each for each in visit.tasks if each is not task), task]

    def _task(self, visit: TracedVisit, name: str, run: int) -> TracedTask | None:
        """None: there are more than are shown."""
        for task in reversed(visit.tasks):
            if (task.task, task.run) == (name, run):
                return task
        visit.task_count += 1
        if len(visit.tasks) >= TASKS_SHOWN_MAX:
            return None
        made = TracedTask(task=name, run=run)
        visit.tasks = [*visit.tasks, made]
        return made

    def _step(self, event: StepEntered | StepExited | StepSkipped, envelope: Envelope) -> None:
        visit = self._visits.get(Place(event.step, event.visit))
        if visit is None:
            return
        if isinstance(event, StepEntered):
            visit.entered_at = envelope.event_time
            return
        visit.exited_at = envelope.event_time
        visit.status = event.status if isinstance(event, StepExited) else "SKIPPED"
        visit.error = event.error if isinstance(event, StepExited) else None

    def _call(self, call: CallDone | CallFailed, name: str) -> None:
        visit = self._visits.get(Place(call.step, call.visit))
        task = None if visit is None else self._task(visit, name, call.run)
        if task is not None:
            task.effect, task.tries = call.effect, call.tries
            task.error = call.error if isinstance(call, CallFailed) else None

    def _loop(self, event: LoopStarted | LoopDone) -> None:
        visit = self._visits.get(Place(event.step, event.visit))
        if visit is None:
            return
        if isinstance(event, LoopStarted):
            if visit.loop is None:  # a person's retry begins it once more
                where = event.collection_ref
                visit.loop = TracedLoop(mode=event.mode, rows=event.collection_size)
                visit.loop.collection = None if where is None else where.uri
        elif visit.loop is not None:
            visit.loop.rows_done = event.stats.succeeded
            visit.loop.rows_failed = event.stats.failed

    def _work(self, event: object, envelope: Envelope) -> None:
        """Commands and stages say once which visit they belong to."""
        command = envelope.command_id or CommandId("")
        stage = envelope.stage_id or StageId("")
        match event:
            case CommandIssued(step=step, visit=visit):
                self._keep(self._commands, command, Place(step, visit))
            case StageOpened(step=step, visit=visit):
                self._keep(self._stages, stage, Place(step, visit))
            case ChildStarted(child_execution_id=child):
                place = self._commands.get(command) or self._stages.get(stage)
                asking = None if place is None else self._visits[place]
                if asking is not None and len(asking.children) < CHILDREN_SHOWN_MAX:
                    asking.children = [*asking.children, child]
            case _ if stage in self._stages:
                loop = self._visits[self._stages[stage]].loop
                if loop is not None:
                    _count(loop, event)

    def _keep(self, places: dict[Any, Place], key: str, place: Place) -> None:
        if place in self._visits:
            places[key] = place


def _count(loop: TracedLoop, event: object) -> None:
    match event:
        case FrameDispatched() | ShardEnqueued():
            loop.frames += 1
        case ShardDone():
            loop.frames_committed += 1
            loop.rows_done += 1
        case ShardFailed(final=final):
            loop.frames_committed += 1
            loop.rows_failed += int(final)
        case FrameCommitted(row_count=rows, failed_rows=failed):
            loop.frames_committed += 1
            loop.rows_done += rows - failed
            loop.rows_failed += failed
        case FrameAbandoned() | FrameFailed():
            loop.frames_lost += 1
