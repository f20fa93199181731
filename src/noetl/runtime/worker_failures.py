"""Work that could not be done at all, in the words that tools use for calls."""

import traceback
from pathlib import PurePath

from noetl.domain.events.values import Failure
from noetl.domain.work import CommandReport, CommandWork, FrameReport, Report, Work
from noetl.kernel.errors import (
    CredentialError,
    EventInvalid,
    NoETLError,
    PayloadError,
    PlaybookInvalid,
)
from noetl.kernel.errors.advice import advised
from noetl.kernel.ids import WorkerId
from noetl.pipeline import failures
from noetl.ports.tool import ToolFailed
from noetl.templates.errors import TemplateError

_KINDS: tuple[tuple[type[NoETLError], str, bool], ...] = (
    (PayloadError, "missing_reference", True),
    (PlaybookInvalid, "schema", False),
    (EventInvalid, "schema", False),
)
"""The error, its kind, and whether another worker may have more luck."""

_OF_CLAIMS = (ToolFailed, TemplateError, CredentialError)
"""What can go wrong before a cursor's frame has rows: told as tasks tell it."""


def failed_report(work: Work, worker: WorkerId, error: Exception) -> Report:
    if isinstance(work, CommandWork):
        return CommandReport(
            execution_id=work.execution_id,
            command_id=work.command_id,
            claim=work.claim,
            worker_id=worker,
            error=failure_of(error),
        )
    return FrameReport(
        execution_id=work.execution_id,
        stage_id=work.stage_id,
        frame_id=work.frame_id,
        attempt=work.attempt,
        worker_id=worker,
        error=failure_of(error),
    )


def failure_of(error: Exception) -> Failure:
    """What the report says. A foreign error's own words may hold anything, secrets too: they stay
    out, its place in the program does not.
    """
    for root, kind, retryable in _KINDS:
        if isinstance(error, root):
            return Failure(kind=kind, message=advised(error), code=error.code, retryable=retryable)
    if isinstance(error, _OF_CLAIMS):
        return failures.failure_of(error)
    if isinstance(error, NoETLError):
        return Failure(kind="unknown", message=str(error), code=error.code)
    name = type(error).__name__
    message = f"the worker failed with {name}{_place_of(error)}; this is a fault of the program"
    return Failure(kind="unknown", message=message, code=name)


def _place_of(error: Exception) -> str:
    passed = traceback.extract_tb(error.__traceback__)
    if not passed:
        return ""
    return f" at {PurePath(passed[-1].filename).name}:{passed[-1].lineno}"
