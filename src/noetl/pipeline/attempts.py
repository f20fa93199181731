"""One try of one task: prepare the call, pass the barrier, run the tool, say how it ended."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.kernel.canonical_json import check_plain
from noetl.kernel.errors import EventInvalid
from noetl.pipeline.boundary import has_effect, run_tool, takes_tables
from noetl.pipeline.chunks import passing_on
from noetl.pipeline.cycle import Cycle, Tried
from noetl.pipeline.effects import Effects
from noetl.pipeline.failures import EXPECTED, failure_of
from noetl.pipeline.job import Hold, Job
from noetl.pipeline.plan import WORKBOOK, TaskPlan
from noetl.pipeline.preparation import Preparation
from noetl.pipeline.printed import printed_by, tell_printed
from noetl.pipeline.sensitive import secrets_in
from noetl.pipeline.sight import Sight
from noetl.pipeline.tables import HandedTables
from noetl.pipeline.workshop import Workshop
from noetl.ports.tool import Tool, ToolCall, ToolFailed, ToolResult
from noetl.templates.layered import Outcome
from noetl.templates.recorded import error_names
from noetl.templates.table_rows import as_lists

_GIVES_SECRETS = "secrets"
"""The kind whose results are secrets: usable inside the pipeline, gone from what leaves it."""


class Attempts:
    __slots__ = ("_effects", "_hold", "_job", "_preparation", "_sight", "_tables", "_workshop")

    def __init__(self, workshop: Workshop, job: Job, sight: Sight, effects: Effects) -> None:
        self._workshop = workshop
        self._job = job
        self._sight = sight
        self._effects = effects
        self._preparation = Preparation(workshop, job, sight)
        self._tables: HandedTables | None = None  # made for the first one that is given

    async def input(self, cycle: Cycle, attempt: int) -> Mapping[str, Any]:
        """What rules may look at when the task itself is not run again."""
        plan = await self._preparation.plan(cycle, attempt)
        return await self._preparation.input(plan, attempt)

    async def one(self, cycle: Cycle, attempt: int, hold: Hold) -> Tried:
        """Raises ClaimLost; whatever else goes wrong is how the try ended."""
        started = self._workshop.clock.monotonic()
        given: Mapping[str, Any] = {}
        self._sight.renew()
        try:
            if cycle.plan.kind == WORKBOOK:
                cycle.plan = await self._preparation.plan(cycle, attempt)
            plan = cycle.plan
            given = plan.input_fixed
            if not plan.is_input_fixed:
                given = await self._preparation.input(plan, attempt)
            call = await self._preparation.call(cycle, plan, attempt, given)
            if self._job.passing is not None:
                call = passing_on(call, cycle, self._job.passing, self._sight.secrets)
            cycle.spent.render_seconds += self._workshop.clock.monotonic() - started
            result = await self._fired(cycle, call, hold)
            is_plain = result.table is None and result.stored is None
            value = result.value if is_plain else await self._handed().value(result)
            if plan.kind == _GIVES_SECRETS:
                self._sight.secrets.add(secrets_in(value))
            if is_plain and not result.is_checked:
                check_plain(value, plan.name)
        except EXPECTED as error:
            milliseconds = self._ended(cycle, started)
            self._doubt_credentials(cycle.plan, error)
            outcome = _failed(error, attempt, milliseconds)
            return Tried(outcome, failure_of(error), attempt, given, milliseconds)
        milliseconds = self._ended(cycle, started)
        meta = {"attempt": attempt, "duration_ms": milliseconds}
        outcome = Outcome(result=value, http=result.http, pg=result.pg, meta=meta)
        return Tried(outcome, None, attempt, given, milliseconds)

    @property
    def has_tables(self) -> bool:
        """Whether a task has given a table."""
        return self._tables is not None

    async def stored(self, cycle: Cycle, tried: Tried) -> Tried:
        """With its table, if it gave one, in the store. Raises StoreUnavailable."""
        return await self._handed().stored(cycle, tried)

    def _handed(self) -> HandedTables:
        if self._tables is None:
            store = self._workshop.contents.store
            self._tables = HandedTables(self._job, store, self._sight.secrets)
        return self._tables

    async def _fired(self, cycle: Cycle, call: ToolCall, hold: Hold) -> ToolResult:
        try:
            result = await self._ran(cycle, call, hold)
        except ToolFailed as error:
            tell_printed(call, printed_by(error), self._sight.secrets)
            raise
        if result.printed:
            tell_printed(call, result.printed, self._sight.secrets)
        return result

    async def _ran(self, cycle: Cycle, call: ToolCall, hold: Hold) -> ToolResult:
        tool = self._workshop.tools.get(call.kind)
        if self._sight.evaluation.may_have_tables and not takes_tables(tool):
            call = await asyncio.to_thread(_with_lists, call)
        is_effect = _is_effect(cycle.plan, tool, call)
        if is_effect:
            await self._effects.before(cycle)
        hold.check()
        if is_effect:
            self._effects.fire(cycle)
        if tool.waits:
            await hold.park()
        clock = self._workshop.clock
        began = clock.monotonic()
        try:
            return await run_tool(tool, call)
        finally:
            cycle.spent.tool_seconds += clock.monotonic() - began
            if tool.waits:
                await hold.unpark()

    def _doubt_credentials(self, plan: TaskPlan, error: Exception) -> None:
        """The target refused what we know: it may have been changed since it was looked up."""
        if isinstance(error, ToolFailed) and error.failure.kind == "auth":
            for wanted in plan.auth:
                self._workshop.credentials.forget(self._job.scope, wanted.name or "")

    def _ended(self, cycle: Cycle, started: float) -> int:
        """A try is over: what it took, in milliseconds."""
        seconds, spent = self._workshop.clock.monotonic() - started, cycle.spent
        spent.kind = cycle.plan.kind  # of a workbook task, it was not known before
        spent.tries += 1
        spent.seconds += seconds
        return int(seconds * 1_000)


def _is_effect(plan: TaskPlan, tool: Tool, call: ToolCall) -> bool:
    """`at_most_once` says that it has one, whatever the tool knows of it."""
    if plan.effects is not None:
        return plan.effects == "at_most_once"
    return has_effect(tool, call.parameters)


def _with_lists(call: ToolCall) -> ToolCall:
    """Blocks: large tables are decoded."""
    return msgspec.structs.replace(
        call, parameters=as_lists(call.parameters), input=as_lists(call.input)
    )


def _failed(error: Exception, attempt: int, milliseconds: int) -> Outcome:
    failure = failure_of(error)
    told = error if isinstance(error, ToolFailed) else ToolFailed(failure)
    return Outcome(
        result=_plain_or_none(told.value),
        status="error",
        error=error_names(failure),
        http=told.http,
        pg=told.pg,
        py=told.py,
        meta={"attempt": attempt, "duration_ms": milliseconds},
    )


def _plain_or_none(value: Any) -> Any:
    """What a failed call gave all the same, if it can be passed on."""
    try:
        check_plain(value)
    except EventInvalid:
        return None
    return value
