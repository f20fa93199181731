"""What people ask of an execution: cancel, pause, resume, retry."""

import msgspec

from noetl.api.route import Asked, Nothing, get, post
from noetl.kernel.errors import StateRefuses
from noetl.kernel.ids import ExecutionId, StepName


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    reason: str | None = None


class Cancel(msgspec.Struct, frozen=True, kw_only=True):
    reason: str | None = None
    cascade: bool = True  # its children too


class Cancelled(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    execution_id: ExecutionId
    cancelled_executions: list[ExecutionId] = []
    message: str


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    step: str | None = None  # None: the one that failed
    reason: str | None = None


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    execution_id: ExecutionId


class CancellationCheck(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: ExecutionId
    cancelled: bool
    status: str


async def cancel(asked: Asked[Cancel, Nothing]) -> Cancelled:
    return await _cancel(asked, asked.body)


async def finalize(asked: Asked[Cancel, Nothing]) -> Cancelled:
    """To end it by force is to cancel it."""
    reason = asked.body.reason or "finalized"
    return await _cancel(asked, msgspec.structs.replace(asked.body, reason=reason))


async def _cancel(asked: Asked[Cancel, Nothing], how: Cancel) -> Cancelled:
    """One that has ended is left as it is, and that is no mistake of the caller's."""
    try:
        cancelled = await asked.services.control.cancel(
            asked.scope, asked.execution, reason=how.reason, cascade=how.cascade
        )
    except StateRefuses as refusal:
        return Cancelled(
            status="already_completed", execution_id=asked.execution, message=str(refusal)
        )
    return Cancelled(
        status="cancelled",
        execution_id=asked.execution,
        cancelled_executions=cancelled,
        message=f"cancelled with {len(cancelled) - 1} children",
    )


async def pause(asked: Asked[Reason, Nothing]) -> Changed:
    await asked.services.control.pause(asked.scope, asked.execution, reason=asked.body.reason)
    return Changed(status="paused", execution_id=asked.execution)


async def resume(asked: Asked[Nothing, Nothing]) -> Changed:
    await asked.services.control.resume(asked.scope, asked.execution)
    return Changed(status="resumed", execution_id=asked.execution)


async def retry(asked: Asked[Retry, Nothing]) -> Changed:
    step = asked.body.step
    await asked.services.control.retry(
        asked.scope,
        asked.execution,
        step=None if step is None else StepName(step),
        reason=asked.body.reason,
    )
    return Changed(status="retried", execution_id=asked.execution)


async def check(asked: Asked[Nothing, Nothing]) -> CancellationCheck:
    view = await asked.services.executions.show(asked.scope, asked.execution)
    return CancellationCheck(
        execution_id=asked.execution, cancelled=view.status == "CANCELLED", status=view.status
    )


_ONE = "/api/executions/{execution_id}"
ROUTES = (
    post(f"{_ONE}/cancel", "End it and its children", cancel, body=Cancel, gives=Cancelled),
    post(f"{_ONE}/finalize", "End it by force", finalize, body=Cancel, gives=Cancelled),
    post(f"{_ONE}/pause", "Start nothing new", pause, body=Reason, gives=Changed),
    post(f"{_ONE}/resume", "Go on", resume, gives=Changed),
    post(f"{_ONE}/retry", "Run it again from a step", retry, body=Retry, gives=Changed),
    get(f"{_ONE}/cancellation-check", "Whether it was cancelled", check, gives=CancellationCheck),
)
