"""A command by the event that issued it: what it is, who holds it, and what it may see."""

from http import HTTPStatus
from typing import Any

import msgspec

from noetl.api.problems import Refused
from noetl.api.route import Asked, Nothing, get
from noetl.api.services import ApiServices
from noetl.decider.view import facts_of
from noetl.domain.execution.rows import CommandRow
from noetl.domain.log import AtEvent
from noetl.domain.projection import ProjectionQuery
from noetl.kernel.ids import EventId, ExecutionId
from noetl.runtime.replay import ReplayRequest

_ROW = msgspec.json.Decoder(CommandRow)


class CommandAsked(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str | None = None  # found sooner when it is known


class CommandContext(msgspec.Struct, frozen=True, kw_only=True):
    """The execution as it was when the command was issued."""

    path: str = ""
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    steps: list[str] = []  # whose results it may see


class CommandDetail(msgspec.Struct, frozen=True, kw_only=True):
    event_id: str
    execution_id: str
    command_id: str
    node_id: str
    node_name: str
    action: str  # the kind of its tool
    status: str
    context: CommandContext
    meta: dict[str, Any]


async def show(asked: Asked[Nothing, CommandAsked]) -> CommandDetail:
    services, event = asked.services, EventId(asked.path["event_id"])
    execution, row = await _found(services, event, asked.query.execution_id)
    request = ReplayRequest(scope=asked.scope, execution_id=execution, cutoff=AtEvent(event))
    facts = facts_of((await services.replay.state(request)).state)
    return CommandDetail(
        event_id=event,
        execution_id=execution,
        command_id=row.command_id,
        node_id=row.step,
        node_name=row.step,
        action=row.tool,
        status=row.status,
        context=CommandContext(
            path=facts.run.path,
            workload=facts.workload,
            ctx=facts.ctx,
            steps=list(facts.results),
        ),
        meta=_meta(row),
    )


async def _found(
    services: ApiServices, event: EventId, execution: str | None
) -> tuple[ExecutionId, CommandRow]:
    """Among what runs, which is always up to date, then among what is known of all executions."""
    for running in services.coordinator.running.values():
        for row in running.state.commands.values():
            if row.issued_event_id == event and running.source.scope == services.scope:
                return running.execution_id, row
    query = ProjectionQuery(
        scope=services.scope,
        projection_type="command",
        execution_id=None if execution is None else ExecutionId(execution),
        where={"issued_event_id": event},
        limit=1,
    )
    for record in await services.projections.query(query):
        return record.execution_id, _ROW.decode(record.canonical)
    raise Refused(
        HTTPStatus.NOT_FOUND,
        "command_not_found",
        f"no command was issued by event {event}; use the event_id of a command.issued event",
    )


def _meta(row: CommandRow) -> dict[str, Any]:
    return {
        "visit": row.visit,
        "iteration": row.iteration,
        "attempt": row.attempt,
        "claim": row.claim,
        "worker_id": row.worker_id,
        "lease_until": row.lease_until,
        "calls": row.calls,
        "error_kind": row.error_kind,
    }


ROUTES = (
    get(
        "/api/commands/{event_id}",
        "A command by the event that issued it",
        show,
        query=CommandAsked,
        gives=CommandDetail,
    ),
)
