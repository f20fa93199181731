"""Failures that the interpreter finds itself, in the words that tools use."""

from typing import Final

import msgspec

from noetl.domain.events.values import Failure
from noetl.kernel.errors import (
    CredentialError,
    EventInvalid,
    NoETLError,
    ObjectError,
    ObjectMissing,
    PayloadError,
    StoreUnavailable,
)
from noetl.kernel.errors.advice import advised
from noetl.ports.tool import ToolFailed
from noetl.templates.errors import TemplateError

FAILED_BY_RULE = "failed_by_rule"
STEP_TIMEOUT = "step_timeout"

ENDED_THE_ROW: Final = frozenset({FAILED_BY_RULE, STEP_TIMEOUT})
"""Codes of failures that no rule had a say in: whoever runs the row again runs the call again."""

# The author's mistakes and the world's. Anything else is our own mistake.
EXPECTED: Final = (
    ToolFailed,
    TemplateError,
    EventInvalid,
    CredentialError,
    PayloadError,
    ObjectError,
    StoreUnavailable,
)

_KINDS: Final[dict[type[NoETLError], tuple[str, bool]]] = {
    TemplateError: ("transform", False),
    EventInvalid: ("schema", False),
    CredentialError: ("auth", False),
    PayloadError: ("missing_reference", True),
    ObjectMissing: ("missing_reference", True),
    ObjectError: ("storage_access", False),  # other bytes are there, or no store holds the name
    StoreUnavailable: ("storage_access", True),
}


def failed(
    kind: str, message: str, *, code: str | None = None, retryable: bool = False
) -> ToolFailed:
    """A failure to raise, as if a tool had found it."""
    return ToolFailed(Failure(kind=kind, message=message, code=code, retryable=retryable))


def failure_of(error: Exception) -> Failure:
    """The failure that one of the expected errors stands for."""
    if isinstance(error, ToolFailed):
        return _told(error)
    assert isinstance(error, EXPECTED)
    kind, retryable = next(kind for root, kind in _KINDS.items() if isinstance(error, root))
    return Failure(kind=kind, message=advised(error), code=error.code, retryable=retryable)


def _told(error: ToolFailed) -> Failure:
    """With what HTTP, PostgreSQL or Python said, so that arcs can ask for it as rules can."""
    http = None if error.http is None else {"status": error.http.get("status")}
    said = {"http": http, "pg": error.pg, "py": error.py}
    kept = {name: value for name, value in said.items() if value}
    if not kept:
        return error.failure
    return msgspec.structs.replace(error.failure, detail={**error.failure.detail, **kept})


def endless(step: str, runs_max: int) -> Failure:
    message = f"step {step} ran {runs_max:,} tasks without an end"
    return Failure(kind="unknown", message=f"{message}; check where its rules jump", code="endless")
