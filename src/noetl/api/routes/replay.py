"""The state of an execution as it was at any point, with the checksums that prove it."""

from typing import Annotated, Any, Literal

import msgspec

from noetl.api.route import Asked, Nothing, get
from noetl.domain.execution.rows import SURFACES
from noetl.domain.log import AtEvent, AtPosition, AtTime, Cutoff
from noetl.domain.surfaces import RowCollector
from noetl.kernel import instant
from noetl.kernel.errors import CutoffInvalid, ExecutionNotFound, TimeInvalid
from noetl.kernel.ids import EventId, ExecutionId
from noetl.runtime.payload_verification import verify_payloads
from noetl.runtime.replay import ReplayReport, ReplayRequest

Projection = Literal["execution", "frame", "loop", "business_object", "stage", "command", "all"]
_SURFACES = {
    "execution": (),
    "frame": ("stages", "frames"),
    "stage": ("stages",),
    "command": ("commands",),
    "loop": ("loops",),
    "business_object": ("business_objects",),
    "all": SURFACES[1:],
}


class StateAsked(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    tenant_id: str | None = None
    organization_id: str | None = None
    projection: Projection = "all"
    as_of_event_id: str | None = None
    as_of_position: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None
    as_of_time: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 10_000
    resolve_payloads: bool = False


class ReplayedState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows of a surface that was not asked for are absent."""

    execution: dict[str, Any]
    stages: list[dict[str, Any]] | None = None
    frames: list[dict[str, Any]] | None = None
    commands: list[dict[str, Any]] | None = None
    loops: list[dict[str, Any]] | None = None
    business_objects: list[dict[str, Any]] | None = None
    event_count: int
    last_event_id: EventId | None
    checksum: str
    report: ReplayReport
    payloads: dict[str, Any] | None = None
    truncated: bool = False  # a surface has more rows than the limit


async def state(asked: Asked[Nothing, StateAsked]) -> ReplayedState:
    query = asked.query
    request = ReplayRequest(
        scope=asked.scope, execution_id=ExecutionId(query.execution_id), cutoff=_cutoff(query)
    )
    _check_scope(asked)
    collector = RowCollector()
    replayed = await asked.services.replay.state(request, collector)
    rows = collector.rows(replayed.state)
    shown = {
        surface: rows[surface] for surface in SURFACES if surface in _SURFACES[query.projection]
    }
    payloads: dict[str, Any] | None = None
    if query.resolve_payloads:
        events = asked.services.replay.events(request)
        payloads = msgspec.to_builtins(await verify_payloads(events, asked.services.results))
    report = replayed.report
    cut: dict[str, Any] = {name: found[: query.limit] for name, found in shown.items()}
    return ReplayedState(
        execution=msgspec.to_builtins(replayed.state.execution),
        **cut,
        event_count=report.event_count,
        last_event_id=report.last_event_id,
        checksum=report.checksum,
        report=report,
        payloads=payloads,
        truncated=any(len(found) > query.limit for found in shown.values()),
    )


def _check_scope(asked: Asked[Nothing, StateAsked]) -> None:
    """The server serves one scope; in any other there is nothing to be found."""
    tenant = asked.query.tenant_id or asked.scope.tenant_id
    organization = asked.query.organization_id or asked.scope.organization_id
    if (tenant, organization) != tuple(asked.scope):
        raise ExecutionNotFound(asked.query.execution_id)


def _cutoff(query: StateAsked) -> Cutoff | None:
    given = (query.as_of_event_id, query.as_of_position, query.as_of_time)
    if sum(each is not None for each in given) > 1:
        raise CutoffInvalid("give one of as_of_event_id, as_of_position and as_of_time")
    if query.as_of_event_id is not None:
        return AtEvent(EventId(query.as_of_event_id))
    if query.as_of_position is not None:
        return AtPosition(query.as_of_position)
    if query.as_of_time is None:
        return None
    try:
        # A plus in a query is a space.
        return AtTime(instant.parse(query.as_of_time.replace(" ", "+")))
    except TimeInvalid as error:
        raise CutoffInvalid(f"as_of_time: {error}") from error


ROUTES = (
    get(
        "/api/replay/state",
        "The state at a point, folded from the log",
        state,
        query=StateAsked,
        gives=ReplayedState,
    ),
)
