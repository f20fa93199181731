"""Executions: listed, shown, their events, effects, variables, and why they wait."""

from http import HTTPStatus
from typing import Annotated, Any, get_args

import msgspec

from noetl.api.event_rows import EventRow
from noetl.api.paging import EventPage, PageAsked, Pagination, page_of
from noetl.api.problems import Refused
from noetl.api.route import Asked, Nothing, get
from noetl.decider.plan import plan_of
from noetl.domain.execution.rows import TERMINAL, ExecutionStatus
from noetl.domain.log import StoredEvent
from noetl.domain.playbook.wording import choices, shown
from noetl.kernel.instant import Instant
from noetl.runtime.effect_entries import EffectCounts, EffectEntry, counted
from noetl.runtime.executions import ExecutionView, Outcome
from noetl.runtime.explain import explain
from noetl.runtime.loop_progress import LoopProgress
from noetl.runtime.seats import why_nobody

STATUSES: tuple[str, ...] = get_args(ExecutionStatus)
HUNDRED = 100
SECONDS_PER_MINUTE = 60


class ExecutionsAsked(msgspec.Struct, frozen=True, kw_only=True):
    page: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100
    status: str | None = None
    path: str | None = None
    before: str = ""  # the last id of the page before: quicker than a page's number


class ExecutionEntry(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    path: str | None = None
    version: int | None = None
    status: str
    start_time: Instant | None = None
    end_time: Instant | None = None
    duration_seconds: float | None = None
    duration_human: str | None = None
    progress: int = 0  # per cent
    current_step: str | None = None
    error: str | None = None
    error_kind: str | None = None
    parent_execution_id: str | None = None
    event_count: int = 0
    loop_progress: list[LoopProgress] = []


class ExecutionDetail(ExecutionEntry, frozen=True, kw_only=True):
    catalog_id: str | None = None
    result: Any = None
    events: list[EventRow] = []
    events_included: bool = True
    events_endpoint: str = ""
    pagination: Pagination


class ExecutionEvents(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    path: str | None = None
    status: str
    events: list[EventRow]
    pagination: Pagination


class Status(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    status: str
    current_step: str | None = None
    completed_steps: list[str] = []
    completed: bool = False
    failed: bool = False
    is_cancelled: bool = False
    completion_inferred: bool = False  # never: clients know the name, and ends are recorded
    progress: int = 0
    duration_seconds: float | None = None
    error: str | None = None
    variables: dict[str, Any] | None = None


class StatusAsked(msgspec.Struct, frozen=True, kw_only=True):
    full: bool = False


class LogAsked(msgspec.Struct, frozen=True, kw_only=True):
    after_version: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100


class Effects(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    effects: list[EffectEntry]
    counts: EffectCounts


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    status: str
    sentences: list[str]


async def listed(asked: Asked[Nothing, ExecutionsAsked]) -> list[ExecutionEntry]:
    query = asked.query
    status = _status(query.status)
    before = query.before
    views: list[ExecutionView] = []
    for _ in range(query.page):
        if views and len(views) < query.limit:
            return []  # the page before was the last
        views = await asked.services.executions.list(
            asked.scope,
            status=status,
            path=query.path,
            before=before,
            limit=query.limit,
        )
        before = views[-1].execution_id if views else before
    return [ExecutionEntry(**_fields(view)) for view in views]


def _status(word: str | None) -> str | None:
    """A word that is no status is a mistake: an empty list would hide it."""
    if word is None or word.upper() in STATUSES:
        return None if word is None else word.upper()
    detail = f"there is no status {shown(word)!r}; use {choices(STATUSES)}"
    raise Refused(HTTPStatus.BAD_REQUEST, "status_unknown", detail)


async def show(asked: Asked[Nothing, PageAsked]) -> ExecutionDetail:
    services = asked.services
    view = await services.executions.show(asked.scope, asked.execution)
    result: Any = None
    if view.status in TERMINAL:
        result = (await services.executions.outcome(asked.scope, asked.execution)).result
    page = await page_of(services, asked.execution, asked.query)
    first = await services.executions.events(asked.scope, asked.execution, limit=1)
    return ExecutionDetail(
        **_fields(view),
        catalog_id=first[0].envelope.catalog_id if first else None,
        result=result,
        events=page.events,
        events_included=asked.query.include_events,
        events_endpoint=f"/api/executions/{asked.execution}/events",
        pagination=page.pagination,
    )


async def events(asked: Asked[Nothing, PageAsked]) -> ExecutionEvents:
    view = await asked.services.executions.show(asked.scope, asked.execution)
    page: EventPage = await page_of(asked.services, asked.execution, asked.query)
    return ExecutionEvents(
        execution_id=asked.execution,
        path=view.path,
        status=view.status,
        events=page.events,
        pagination=page.pagination,
    )


async def log(asked: Asked[Nothing, LogAsked]) -> list[StoredEvent]:
    await asked.services.check_scope(asked.execution)
    query = asked.query
    return await asked.services.log.read(
        asked.execution, after_version=query.after_version, limit=query.limit
    )


async def outcome(asked: Asked[Nothing, Nothing]) -> Outcome:
    return await asked.services.executions.outcome(asked.scope, asked.execution)


async def status(asked: Asked[Nothing, StatusAsked]) -> Status:
    services = asked.services
    view = await services.executions.show(asked.scope, asked.execution)
    steps: list[str] = []
    variables: dict[str, Any] | None = None
    if asked.query.full:
        state = await services.state(asked.execution)
        steps = [name for name, step in state.steps.items() if step.exited_event_id is not None]
        variables = state.ctx
    return Status(
        execution_id=asked.execution,
        status=view.status,
        current_step=view.current_step,
        completed_steps=steps,
        completed=view.status == "COMPLETED",
        failed=view.status == "FAILED",
        is_cancelled=view.status == "CANCELLED",
        progress=_progress(view),
        duration_seconds=view.duration_seconds,
        error=view.error,
        variables=variables,
    )


async def effects(asked: Asked[Nothing, Nothing]) -> Effects:
    found = await asked.services.executions.effects(asked.scope, asked.execution)
    return Effects(execution_id=asked.execution, effects=found, counts=counted(found))


async def explained(asked: Asked[Nothing, Nothing]) -> Explained:
    services = asked.services
    state = await services.state(asked.execution)
    digest = state.execution.playbook_digest or ""
    playbook = await services.playbooks.load(asked.scope, digest)
    seats = services.coordinator.seats
    sentences = explain(
        state,
        plan_of(playbook, digest),
        services.clock.now(),
        lambda step: why_nobody(seats, playbook, step),
    )
    return Explained(
        execution_id=asked.execution, status=state.execution.status, sentences=sentences
    )


def _fields(view: ExecutionView) -> dict[str, Any]:
    return {
        "execution_id": view.execution_id,
        "path": view.path,
        "version": view.version,
        "status": view.status,
        "start_time": view.started_at,
        "end_time": view.ended_at,
        "duration_seconds": view.duration_seconds,
        "duration_human": _human(view.duration_seconds),
        "progress": _progress(view),
        "current_step": view.current_step,
        "error": view.error,
        "error_kind": view.error_kind,
        "parent_execution_id": view.parent_execution_id,
        "event_count": view.event_count,
        "loop_progress": view.loop_progress,
    }


def _progress(view: ExecutionView) -> int:
    """What is known of it: loops say how many rows they have, steps do not."""
    if view.status in TERMINAL:
        return HUNDRED
    total = sum(loop.total or 0 for loop in view.loop_progress)
    done = sum(loop.done + loop.failed for loop in view.loop_progress)
    return 0 if total == 0 else min(HUNDRED - 1, HUNDRED * done // total)


def _human(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    if seconds < SECONDS_PER_MINUTE:
        return f"{seconds:.3g}s"
    minutes, rest = divmod(round(seconds), SECONDS_PER_MINUTE)
    hours, minutes = divmod(minutes, SECONDS_PER_MINUTE)
    return f"{hours}h {minutes}m {rest}s" if hours else f"{minutes}m {rest}s"


_ONE = "/api/executions/{execution_id}"
ROUTES = (
    get(
        "/api/executions",
        "Executions, newest first",
        listed,
        query=ExecutionsAsked,
        gives=list[ExecutionEntry],
    ),
    get(
        _ONE,
        "An execution with a page of its events",
        show,
        query=PageAsked,
        gives=ExecutionDetail,
    ),
    get(f"{_ONE}/status", "How far it came", status, query=StatusAsked, gives=Status),
    get(f"{_ONE}/events", "Its events", events, query=PageAsked, gives=ExecutionEvents),
    get(f"{_ONE}/log", "Its rows of the log", log, query=LogAsked, gives=list[StoredEvent]),
    get(f"{_ONE}/outcome", "How it ended, with its result", outcome, gives=Outcome),
    get(f"{_ONE}/effects", "The ledger of its effects", effects, gives=Effects),
    get(f"{_ONE}/explain", "Why it waits", explained, gives=Explained),
)
