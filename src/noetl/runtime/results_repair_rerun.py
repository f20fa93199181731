"""Lost bytes by running again what made them: aside, with what it saw then, and never an effect."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import msgspec

from noetl.decider.frames import row_concurrency
from noetl.decider.view import facts_of
from noetl.domain.events import (
    CallDone,
    CommandCompleted,
    CommandFailed,
    FrameCommitted,
    ShardDone,
)
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.execution.rows import CommandRow
from noetl.domain.execution.state import ExecutionState, LoopWork
from noetl.domain.naming.result_name import ResultName
from noetl.domain.payload import Fingerprint
from noetl.domain.work import Call, CommandWork, Facts, FrameWork, RowOutcome, holder_of
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import EventId, FrameId, StageId, WorkerId
from noetl.kernel.scope import Scope
from noetl.ports.clock import Clock
from noetl.results.store import ResultStore
from noetl.results.tiers import FEATHER_MEDIA_TYPE
from noetl.runtime.frames import Frames
from noetl.runtime.results_repair_aside import AsideObjectStore
from noetl.runtime.results_repair_copies import Found
from noetl.runtime.results_repair_guard import (
    ClosedDesk,
    ClosedJournal,
    EffectFreePipelines,
    FreeHold,
    NotAgain,
)
from noetl.runtime.results_repair_log import History
from noetl.runtime.results_repair_objects import Named
from noetl.runtime.results_repair_stored import stored_reference
from noetl.runtime.worker_commands import Commands, Pipelines

RUN = "run"
SECONDS_MAX = 600.0
ROWS_MAX = 10_000
BYTES_MAX = 256 * 1024 * 1024
"""What is larger is not run again: the values of a run are in memory before they are bytes."""

_REPAIR = WorkerId("repair")
_LEASE_SECONDS = 2 * SECONDS_MAX
_Made = CallDone | CommandCompleted | CommandFailed | FrameCommitted | ShardDone


class Apart(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's parts, over a store whose writes land aside."""

    pipelines: Pipelines
    results: ResultStore
    objects: AsideObjectStore
    clock: Clock


class RunAgain:
    def __init__(self, history: History, apart: Apart) -> None:
        pipelines = EffectFreePipelines(apart.pipelines)
        self._history = history
        self._apart = apart
        self._commands = Commands(pipelines, apart.results, ClosedDesk(), apart.clock)
        self._frames = Frames(pipelines, apart.results, ClosedJournal(), apart.clock)

    async def __call__(self, named: Named, /) -> AsyncGenerator[Found]:
        event = named.recorded.event
        if not isinstance(event, _Made):
            return
        try:
            reason = await self._why_not(named, event)
            data = None if named.key is None else self._apart.objects.written(named.key)
            yield Found(RUN, None if reason else data, reason)
        finally:
            await self._apart.objects.forget()

    async def _why_not(self, named: Named, event: _Made) -> str | None:
        """None: the same bytes lie aside."""
        if (named.reference.byte_length or 0) > BYTES_MAX:
            return f"larger than {BYTES_MAX:,} bytes, which are not made again in memory"
        try:
            async with asyncio.timeout(SECONDS_MAX):
                match event:
                    case FrameCommitted() | ShardDone():
                        failure = await self._run_frame(named, event)
                    case CallDone(task=str(task), effect=str()):
                        return f"task {task!r} has effects, which are never fired again"
                    case _:
                        failure = await self._run_command(named, event)
        except NotAgain as refusal:
            return refusal.reason
        except NoETLError as error:
            return f"running it again failed: {error}"
        except TimeoutError:
            return f"running it again took longer than {SECONDS_MAX:g} s"
        return failure or await self._why_other(named)

    async def _run_command(
        self, named: Named, event: CallDone | CommandCompleted | CommandFailed
    ) -> str | None:
        """With the facts at its `command.issued`; what was recorded of its effects is adopted."""
        before = await self._history.before(named.recorded)
        command = named.recorded.envelope.command_id
        row = None if command is None else before.commands.get(command)
        if row is None:
            return "the log does not say which command made it"
        issued = await self._history.at(named.recorded, row.issued_event_id)
        work = CommandWork(
            scope=named.scope,
            execution_id=named.recorded.envelope.execution_id,
            playbook_digest=before.execution.playbook_digest or "",
            step=row.step,
            visit=row.visit,
            command_id=row.command_id,
            claim=row.claim,
            lease_until=self._apart.clock.now(),
            lease_seconds=_LEASE_SECONDS,
            facts=facts_of(issued),
            journal=tuple([call async for call in self._journal(named, row, before)]),
            visit_attempt=row.attempt,
        )
        playbook = await self._history.playbooks.load(named.scope, work.playbook_digest)
        report = await self._commands.run(work, playbook, FreeHold(), _REPAIR)
        if report.error is not None and not isinstance(event, CommandFailed):
            return f"running it again failed: {report.error.message}"
        return None

    async def _journal(
        self, named: Named, row: CommandRow, before: ExecutionState
    ) -> AsyncIterator[Call]:
        """Effects whose results are at hand. The last ones of a command that succeeded stand in
        the log without them, but a large one was stored under its own name all the same."""
        for call in before.calls.get(row.command_id, ()):
            result = call.result
            if result is None:
                yield call
            elif result.reference is not None:
                if result.reference.uri != named.reference.uri:
                    yield call
            elif result.context:
                yield call
            elif (reference := await self._stored(named, row, call)) is not None:
                whole = Result(status=result.status, reference=reference)
                yield msgspec.structs.replace(call, result=whole)

    async def _stored(self, named: Named, row: CommandRow, call: Call) -> ResultReference | None:
        """A call's own result, if there is something under its name."""
        name = ResultName(
            tenant=named.scope.tenant_id,
            project=named.scope.organization_id,
            execution_id=named.recorded.envelope.execution_id,
            step=row.step,
            task=call.task,
            run=call.run,
            attempt=holder_of(row.claim, row.attempt),
            visit=row.visit,
        )
        if name.uri == named.reference.uri:
            return None  # it is what was lost, or damaged
        return await stored_reference(self._apart.results, name)

    async def _run_frame(self, named: Named, event: FrameCommitted | ShardDone) -> str | None:
        """Exactly the rows that were committed, whatever had kept others from being started."""
        rows = 1 if isinstance(event, ShardDone) else event.row_count
        failed_rows = 0 if isinstance(event, ShardDone) else event.failed_rows
        if rows > ROWS_MAX:
            return f"it has {rows:,} rows; up to {ROWS_MAX:,} are run again"
        before = await self._history.before(named.recorded)
        work = await self._frame_work(named, rows, before)
        if work is None:
            return "the log does not say which rows it was made of"
        if work.mode == "cursor":
            return "a cursor claimed its rows, and claims none again"
        playbook = await self._history.playbooks.load(named.scope, work.playbook_digest)
        end = await self._frames.run(work, playbook, FreeHold(), _REPAIR)
        if end.journal is not None:  # there is nobody to report to
            await end.journal.buffer.drop()
        if end.report.failed_rows > failed_rows and end.report.row_error is not None:
            return f"running it again failed: {end.report.row_error.message}"
        return None

    async def _frame_work(self, named: Named, rows: int, state: ExecutionState) -> FrameWork | None:
        envelope = named.recorded.envelope
        frame = None if envelope.frame_id is None else state.frames.get(envelope.frame_id)
        stage = None if frame is None else state.stages.get(frame.stage_id)
        loop_id = None if stage is None else stage.loop_id
        loop = None if loop_id is None else state.loop_work.get(loop_id)
        window = None if loop is None or frame is None else loop.out.get(frame.frame_id)
        if frame is None or stage is None or loop is None or window is None:
            return None
        facts = facts_of(await self._history.at(named.recorded, stage.opened_event_id))
        if loop.mode == "sequential" and frame.claimed_event_id is not None:
            facts = await self._with_ctx(facts, named, frame.claimed_event_id)
        earlier = loop.earlier.get(frame.frame_id)
        return FrameWork(
            scope=named.scope,
            execution_id=envelope.execution_id,
            playbook_digest=state.execution.playbook_digest or "",
            step=loop.step,
            visit=loop.visit,
            stage_id=loop.stage_id or StageId(""),
            frame_id=frame.frame_id,
            ordinal=frame.ordinal,
            attempt=frame.attempts,
            lease_until=self._apart.clock.now(),
            lease_seconds=float(loop.policy.get("lease_seconds", _LEASE_SECONDS)),
            mode=loop.mode,
            first_index=window.first,
            row_count=rows,
            total=loop.total,
            row_concurrency=row_concurrency(loop),
            failure="continue",
            facts=facts,
            rows=await self._rows(named.scope, loop, frame.frame_id, rows),
            collection=loop.collection_ref,
            visit_attempt=loop.attempt,
            kept=_kept(None if earlier is None or earlier.output_ref else earlier.outcomes),
            kept_ref=None if earlier is None else earlier.output_ref,
            policy=loop.policy if loop.mode == "cursor" else {},
        )

    async def _rows(
        self, scope: Scope, loop: LoopWork, frame: FrameId, count: int
    ) -> list[Any] | None:
        """Those of a cursor are not claimed again: the log has them. None: in the collection."""
        claimed, first = loop.cursor.claimed.get(frame), loop.out[frame].first
        if claimed is None:
            return None if loop.collection is None else loop.collection[first : first + count]
        if claimed.reference is None:
            return claimed.rows
        rows: list[Any] = await self._apart.results.content(scope, claimed.reference.uri)
        return rows

    async def _with_ctx(self, facts: Facts, named: Named, dispatched: EventId) -> Facts:
        """Rows of a sequential loop see what the rows before them wrote."""
        state = await self._history.at(named.recorded, dispatched)
        return msgspec.structs.replace(facts, ctx=state.ctx)

    async def _why_other(self, named: Named) -> str | None:
        """Which of the reasons for other bytes it is; None: they are the same."""
        written = None if named.key is None else self._apart.objects.written(named.key)
        if written is None:
            return "running it again gave another result: it depends on time or on other data"
        fingerprint = Fingerprint()
        async for chunk in written:
            fingerprint.add(chunk)
        if fingerprint.stored().sha256 == named.reference.sha256:
            return None
        return _other_versions(named.reference) or (
            "running it again gave other bytes: it depends on time or on other data"
        )


def _kept(outcomes: list[object] | None) -> tuple[RowOutcome, ...]:
    return msgspec.convert(outcomes or [], tuple[RowOutcome, ...])


def _other_versions(reference: ResultReference) -> str | None:
    if reference.media_type != FEATHER_MEDIA_TYPE:
        return None
    from noetl.results import feather  # noqa: PLC0415 - Arrow is loaded with the first table

    written = f"{reference.encoder} with Arrow {reference.arrow_version}"
    here = f"{feather.ENCODER} with Arrow {feather.ARROW_VERSION}"
    return None if written == here else f"it was written by {written}, and here is {here}"
