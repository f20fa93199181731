"""Every error as a problem document: the same code that the command line and Python give."""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from noetl.kernel.errors import (
    ClaimLost,
    CollectionRefused,
    CredentialMissing,
    CutoffInvalid,
    DuplicateFact,
    EntryNotFound,
    EventInvalid,
    ExecutionNotFound,
    FrameNotFound,
    FrameOwnerMismatch,
    HomeInUse,
    InvariantBroken,
    KeyReused,
    LogUnavailable,
    NoETLError,
    ObjectDiffers,
    ObjectError,
    ObjectKeyInvalid,
    ObjectMissing,
    PayloadMissing,
    PlaybookInvalid,
    RequestInvalid,
    StageNotFound,
    StageOver,
    StateRefuses,
    StoreUnavailable,
    VersionConflict,
)
from noetl.kernel.errors.advice import advised

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_SECONDS = 1

STATUSES: Mapping[type[NoETLError], HTTPStatus] = {
    ExecutionNotFound: HTTPStatus.NOT_FOUND,
    EntryNotFound: HTTPStatus.NOT_FOUND,
    StageNotFound: HTTPStatus.NOT_FOUND,
    FrameNotFound: HTTPStatus.NOT_FOUND,
    CredentialMissing: HTTPStatus.NOT_FOUND,
    PayloadMissing: HTTPStatus.NOT_FOUND,
    ObjectMissing: HTTPStatus.NOT_FOUND,
    ObjectKeyInvalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    ObjectDiffers: HTTPStatus.CONFLICT,
    CutoffInvalid: HTTPStatus.BAD_REQUEST,
    RequestInvalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    PlaybookInvalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    EventInvalid: HTTPStatus.UNPROCESSABLE_ENTITY,
    StateRefuses: HTTPStatus.CONFLICT,
    ClaimLost: HTTPStatus.CONFLICT,
    CollectionRefused: HTTPStatus.CONFLICT,
    StageOver: HTTPStatus.GONE,
    VersionConflict: HTTPStatus.CONFLICT,
    DuplicateFact: HTTPStatus.CONFLICT,
    KeyReused: HTTPStatus.CONFLICT,
    HomeInUse: HTTPStatus.SERVICE_UNAVAILABLE,
    LogUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
}
"""By class: the nearest one above an error counts; all others are our own fault."""

_HTTP_CODES = {
    HTTPStatus.NOT_FOUND: ("no_such_route", "there is nothing under this path; see /openapi.json"),
    HTTPStatus.METHOD_NOT_ALLOWED: ("method_not_allowed", "this path has no such method"),
}


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """RFC 9457, with our own `code` and whether trying again may help."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    retryable: bool
    instance: str
    problems: tuple[str, ...] = ()  # of a playbook: all of them
    facts: dict[str, str] = {}  # of an object: which one, and its digests
    terminal_event_id: str | None = None  # of a frame that has ended
    owner: dict[str, str] = {}  # of a frame that is out: `owner_worker`, `attempt`, `lease_until`


class Refused(HTTPException):
    """A request that does not get as far as the runtime."""

    def __init__(self, status: HTTPStatus, code: str, detail: str) -> None:
        super().__init__(status_code=status, detail=detail)
        self.code = code


def of_error(error: NoETLError, instance: str) -> Response:
    status = status_of(error)
    is_ours = status == HTTPStatus.INTERNAL_SERVER_ERROR and isinstance(error, InvariantBroken)
    problem = _problem(
        status,
        error.code,
        "something went wrong inside; the log of the server says what"
        if is_ours
        else advised(error),
        instance,
    )
    problem = msgspec.structs.replace(
        problem,
        retryable=error.retryable,
        problems=error.problems if isinstance(error, PlaybookInvalid) else (),
        facts=dict(vars(error)) if isinstance(error, ObjectError) else {},
        terminal_event_id=getattr(error, "terminal_event_id", None),
        owner=error.owner if isinstance(error, FrameOwnerMismatch) else {},
    )
    return _response(problem)


def status_of(error: NoETLError) -> HTTPStatus:
    for each in type(error).__mro__:
        if each in STATUSES:
            return STATUSES[each]
    return HTTPStatus.INTERNAL_SERVER_ERROR


def is_server_side(error: NoETLError) -> bool:
    return status_of(error) >= HTTPStatus.INTERNAL_SERVER_ERROR


def of_refusal(error: HTTPException, instance: str) -> Response:
    status = HTTPStatus(error.status_code)
    code, detail = _HTTP_CODES.get(status, ("http", error.detail))
    if isinstance(error, Refused):
        code, detail = error.code, error.detail
    return _response(_problem(status, code, detail, instance), error.headers)


def unforeseen(instance: str) -> Response:
    """Nothing of the inside gets out; the server's own log has it all."""
    detail = "something went wrong inside; the log of the server says what"
    return _response(_problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", detail, instance))


def _problem(status: HTTPStatus, code: str, detail: str, instance: str) -> Problem:
    return Problem(
        type=f"urn:noetl:problem:{code}",
        title=status.phrase,
        status=int(status),
        detail=detail,
        code=code,
        retryable=status == HTTPStatus.SERVICE_UNAVAILABLE,
        instance=instance,
    )


def _response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    told = dict(headers or {})
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        told["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if problem.status == HTTPStatus.UNAUTHORIZED:
        told["WWW-Authenticate"] = "Bearer"
    return Response(
        msgspec.json.encode(problem),
        status_code=problem.status,
        headers=told,
        media_type=MEDIA_TYPE,
    )
