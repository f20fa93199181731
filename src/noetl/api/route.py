"""A route as a value: what it takes, what it gives, and the function between them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, Literal, TypeVar

import msgspec
from starlette.requests import Request

from noetl.api.problems import Refused
from noetl.api.services import ApiServices
from noetl.domain.playbook.wording import choices
from noetl.kernel.ids import ExecutionId, StageId
from noetl.kernel.scope import Scope
from noetl.kernel.stage_token import StageGrant

BODY_BYTES_MAX = 8 * 1024 * 1024

Method = Literal["GET", "HEAD", "POST", "PUT", "DELETE"]


class Nothing(msgspec.Struct, frozen=True):
    """A body or a query that says nothing; what is in it is passed over."""


B = TypeVar("B")
Q = TypeVar("Q")


@dataclass(frozen=True, slots=True)
class Asked(Generic[B, Q]):
    """One request, read and checked."""

    services: ApiServices
    body: B
    query: Q
    path: Mapping[str, str]
    headers: Mapping[str, str]
    is_internal: bool
    grant: StageGrant | None  # of a slot, which serves one stage and nothing else
    is_gone: Callable[[], Awaitable[bool]]  # whether the caller has hung up
    stream: Callable[[], AsyncIterator[bytes]]  # a body of any length, where no type is expected

    @property
    def scope(self) -> Scope:
        return self.services.scope

    def check_grant(self, execution: ExecutionId, stage: StageId | None = None) -> None:
        """Refuse a slot that speaks of another stage than its own."""
        grant = self.grant
        if grant is None:
            return
        if execution != grant.execution_id or (stage is not None and stage != grant.stage_id):
            raise Refused(
                HTTPStatus.FORBIDDEN, "stage_only", f"this token is for stage {grant.stage_id} only"
            )

    @property
    def execution(self) -> ExecutionId:
        return ExecutionId(self.path["execution_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Route(Generic[B, Q]):
    method: Method
    path: str  # as Starlette spells it
    summary: str
    endpoint: Callable[[Asked[B, Q]], Awaitable[object]]
    body: type[B]
    query: type[Q]
    gives: Any  # a type for msgspec; None: the endpoint answers by itself
    media_type: str = "application/json"
    headers: tuple[str, ...] = ()  # those that mean something here, besides the keys

    @property
    def public_path(self) -> str:
        return self.path.replace(":path}", "}")


AnyRoute = Route[Any, Any]


def get(
    path: str, summary: str, endpoint: Callable[[Asked[Nothing, Q]], Awaitable[object]], **more: Any
) -> AnyRoute:
    """A question without a body; `query` and `gives` are types."""
    return Route(
        **{"method": "GET", "body": Nothing, "query": Nothing, "gives": None, **more},
        path=path,
        summary=summary,
        endpoint=endpoint,
    )


def post(
    path: str, summary: str, endpoint: Callable[[Asked[B, Nothing]], Awaitable[object]], **more: Any
) -> AnyRoute:
    return Route(
        **{"method": "POST", "body": Nothing, "query": Nothing, "gives": None, **more},
        path=path,
        summary=summary,
        endpoint=endpoint,
    )


async def read(request: Request, route: AnyRoute, services: ApiServices) -> Asked[Any, Any]:
    has_body = route.body is not Nothing
    return Asked(
        services=services,
        body=_body(await _bytes(request), route.body) if has_body else Nothing(),
        query=_query(request, route.query),
        path=request.path_params,
        headers=request.headers,
        is_internal=getattr(request.state, "is_internal", False),
        grant=getattr(request.state, "grant", None),
        is_gone=request.is_disconnected,
        stream=request.stream,
    )


async def _bytes(request: Request) -> bytes:
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > BODY_BYTES_MAX:
        raise _too_large()
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            raise _too_large()
    return bytes(data)


def _too_large() -> Refused:
    return Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_too_large",
        f"a body has at most {BODY_BYTES_MAX} bytes; keep data in files or tables and pass where"
        " they are",
    )


def _body(data: bytes, expected: Any) -> Any:
    """No body at all is an empty object: most fields of most bodies can be left out."""
    try:
        return msgspec.json.decode(data or b"{}", type=expected)
    except msgspec.ValidationError as error:
        reason = f"the body is wrong: {error}{_known_fields(error, expected)}"
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "body_invalid", reason) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(
            HTTPStatus.BAD_REQUEST, "body_malformed", f"the body is not JSON: {error}"
        ) from error


def _known_fields(error: msgspec.ValidationError, expected: Any) -> str:
    """For a field that was probably misspelt; of an inner object the schema tells more."""
    words = str(error)
    if "unknown field" not in words:
        return ""
    if " - at " in words:
        return "; /openapi.json lists the fields"
    return f"; it may have {choices(field.name for field in msgspec.structs.fields(expected))}"


def _query(request: Request, expected: Any) -> Any:
    given = {name: value for name, value in request.query_params.items() if value != ""}
    try:
        return msgspec.convert(given, expected, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(
            HTTPStatus.UNPROCESSABLE_ENTITY, "query_invalid", f"the query is wrong: {error}"
        ) from error
