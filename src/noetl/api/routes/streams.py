"""An execution's events as they happen."""

from http import HTTPStatus
from typing import Annotated

import msgspec
from starlette.responses import Response, StreamingResponse

from noetl.api.following import Form
from noetl.api.route import Asked, Nothing, get
from noetl.domain.execution.rows import TERMINAL
from noetl.kernel.errors import RequestInvalid


class FollowAsked(msgspec.Struct, frozen=True, kw_only=True):
    after_version: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    form: Form = "rows"


async def follow(asked: Asked[Nothing, FollowAsked]) -> Response:
    """From the beginning, or after the version that `Last-Event-ID` names."""
    services, execution = asked.services, asked.execution
    version = _last_seen(asked.headers.get("last-event-id"), asked.query.after_version)
    view = await services.executions.show(asked.scope, execution)
    is_over = view.status in TERMINAL
    if is_over and version >= (await services.log.head(execution)).version:
        return Response(status_code=HTTPStatus.NO_CONTENT)  # tells a browser not to come back
    return StreamingResponse(
        services.following.stream(execution, version, is_over=is_over, form=asked.query.form),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _last_seen(header: str | None, asked: int) -> int:
    if header is None:
        return asked
    if not (header.isascii() and header.isdecimal()) or int(header) >= 2**63:
        raise RequestInvalid(f"Last-Event-ID is {header!r}; send the number of the last event")
    return int(header)


ROUTES = (
    get(
        "/api/executions/{execution_id}/stream",
        "Its events as they happen (server-sent events)",
        follow,
        query=FollowAsked,
        media_type="text/event-stream",
    ),
)
