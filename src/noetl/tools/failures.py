"""The words in which every tool says why a call failed, and which failures a retry may cure."""

from typing import Any, Final, TypedDict, Unpack

from noetl.domain.events.values import Failure
from noetl.ports.tool import ToolFailed

RETRYABLE_BY_KIND: Final[dict[str, bool]] = {
    "connection": True,
    "timeout": True,
    "rate_limit": True,
    "auth": False,
    "not_found": False,
    "client_error": False,
    "server_error": True,
    "schema": False,
    "parse": False,
    "transform": False,
    "db_connection": True,
    "db_constraint": False,
    "db_deadlock": True,
    "db_timeout": True,
    "storage_quota": False,
    "storage_access": False,
    "missing_reference": True,
    "effect_in_doubt": False,
    "cancelled": False,
    "unknown": False,
}
"""Every kind there is. Rules in playbooks compare with these words."""


class Told(TypedDict, total=False):
    """What besides its kind and message may be known of a failure."""

    code: str | None  # what the target itself calls it: an exit status, an SQLSTATE, an HTTP status
    retryable: bool | None  # None: as the kind has it
    detail: dict[str, Any] | None
    value: Any  # what the call gave all the same
    http: dict[str, Any] | None
    pg: dict[str, Any] | None
    py: dict[str, Any] | None


def failed(kind: str, message: str, **told: Unpack[Told]) -> ToolFailed:
    """A failure to raise. The message says what to do and holds no secret."""
    assert kind in RETRYABLE_BY_KIND, f"{kind} is not a kind of failure"
    retryable = told.get("retryable")
    failure = Failure(
        kind=kind,
        message=message,
        retryable=RETRYABLE_BY_KIND[kind] if retryable is None else retryable,
        code=told.get("code"),
        detail=told.get("detail") or {},
    )
    return ToolFailed(
        failure,
        value=told.get("value"),
        http=told.get("http"),
        pg=told.get("pg"),
        py=told.get("py"),
    )
