"""Pages of an execution's events, by number or from an event on."""

from typing import Annotated

import msgspec

from noetl.api.event_rows import EventRow, event_row
from noetl.api.services import ApiServices
from noetl.domain.log import AtEvent
from noetl.kernel.errors import CutoffInvalid
from noetl.kernel.ids import EventId, ExecutionId
from noetl.ports.event_log import PAGE_EVENTS_MAX


class PageAsked(msgspec.Struct, frozen=True, kw_only=True):
    page: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    page_size: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100
    since_event_id: str | None = None
    event_type: str | None = None
    include_events: bool = True


class Pagination(msgspec.Struct, frozen=True, kw_only=True):
    page: int
    page_size: int
    total_events: int
    total_pages: int
    has_next: bool
    has_prev: bool


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    events: list[EventRow]
    pagination: Pagination


async def page_of(services: ApiServices, execution: ExecutionId, asked: PageAsked) -> EventPage:
    """Versions have no gaps, so a page's number says where it begins; types have to be counted."""
    since = await _version(services, execution, asked.since_event_id)
    skipped = (asked.page - 1) * asked.page_size
    if asked.event_type is not None:
        rows = await _of_type(services, execution, since, asked.event_type)
        total, rows = len(rows), rows[skipped : skipped + asked.page_size]
    else:
        total = (await services.log.head(execution)).version - since
        found = await services.executions.events(
            services.scope, execution, after_version=since + skipped, limit=asked.page_size
        )
        rows = [event_row(recorded) for recorded in found]
    pages = -(-total // asked.page_size)
    return EventPage(
        events=rows if asked.include_events else [],
        pagination=Pagination(
            page=asked.page,
            page_size=asked.page_size,
            total_events=total,
            total_pages=pages,
            has_next=asked.page < pages,
            has_prev=asked.page > 1,
        ),
    )


async def _version(services: ApiServices, execution: ExecutionId, since: str | None) -> int:
    if since is None:
        return 0
    version = await services.log.version_at(execution, AtEvent(EventId(since)))
    if version is None:
        raise CutoffInvalid(f"execution {execution} has no event {since}")
    return version


async def _of_type(
    services: ApiServices, execution: ExecutionId, since: int, event_type: str
) -> list[EventRow]:
    rows: list[EventRow] = []
    while page := await services.executions.events(
        services.scope,
        execution,
        after_version=since,
        limit=PAGE_EVENTS_MAX,
        event_type=event_type,
    ):
        rows += [event_row(recorded) for recorded in page]
        since = page[-1].envelope.stream_version
        if len(page) < PAGE_EVENTS_MAX:
            break
    return rows
