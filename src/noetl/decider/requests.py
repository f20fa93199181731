"""What people can ask of a running execution: (state, request) -> events, or a refusal."""

from noetl.decider.answers import Decided
from noetl.decider.loops import stats_of
from noetl.domain.events import (
    CommandCancelled,
    ExecutionCancelled,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    FrameFailed,
    LoopDone,
    StageClosed,
)
from noetl.domain.events.values import Failure
from noetl.domain.execution.rows import TERMINAL
from noetl.domain.execution.state import ExecutionState
from noetl.domain.playbook.model import Playbook
from noetl.kernel.errors import StateRefuses
from noetl.kernel.ids import FrameId, StepName

CANCELLED = Failure(kind="cancelled", message="the execution was cancelled")


def cancel(state: ExecutionState, reason: str | None) -> list[Decided]:
    """Everything that is open ends, then the execution."""
    _refuse_if_over(state, "cannot be cancelled")
    ended = [_frame_cancelled(frame) for frame in state.frames]
    for work in state.loop_work.values():
        done = LoopDone(
            loop_id=work.loop_id,
            step=work.step,
            status="cancelled",
            stats=stats_of(work),
            visit=work.visit,
            error=CANCELLED,
        )
        ended.append(Decided(event=done))
        if work.stage_id is not None:
            ended.append(Decided(event=StageClosed(status="CANCELLED"), loop_id=work.loop_id))
    ended += [
        Decided(event=CommandCancelled(reason=reason), command_id=command)
        for command in state.commands
    ]
    return [*ended, Decided(event=ExecutionCancelled(reason=reason))]


def _frame_cancelled(frame: FrameId) -> Decided:
    return Decided(event=FrameFailed(error=CANCELLED), frame_id=frame)


def pause(state: ExecutionState, reason: str | None) -> list[Decided]:
    _refuse_if_over(state, "cannot be paused")
    if state.execution.status == "PAUSED":
        return []
    return [Decided(event=ExecutionPaused(reason=reason))]


def resume(state: ExecutionState) -> list[Decided]:
    again = (
        f"cannot be resumed; run it again: noetl executions retry {state.execution.execution_id}"
    )
    _refuse_if_over(state, again)
    return [Decided(event=ExecutionResumed())] if state.execution.status == "PAUSED" else []


def retry(
    state: ExecutionState, playbook: Playbook, step: StepName | None, reason: str | None
) -> list[Decided]:
    """From the step that is named, else from every step that failed or was cancelled; when none
    did, from the loops whose author lets rows fail, if some have."""
    execution = state.execution
    if execution.status == "PAUSED":
        raise StateRefuses(execution.execution_id, "is paused; resume it, or cancel it first")
    if execution.status not in TERMINAL:
        raise StateRefuses(execution.execution_id, "is still running; cancel it or wait")
    names = (_unfinished(state) or _with_failed_rows(state)) if step is None else [step]
    if not names and not state.tokens:
        raise StateRefuses(execution.execution_id, "has no failed step; name one: --from STEP")
    for name in names:
        if name not in playbook.steps:
            known = ", ".join(playbook.steps)
            raise StateRefuses(execution.execution_id, f"has no step {name!r}; it has {known}")
    return [
        Decided(event=_retried(state, name, reason, also=number > 0))
        for number, name in enumerate(names or [next(iter(state.tokens))])
    ]


def _retried(
    state: ExecutionState, name: StepName, reason: str | None, *, also: bool
) -> ExecutionRetried:
    before = state.steps.get(name)
    if before is None:
        return ExecutionRetried(step=name, visit=1, reason=reason, also=also)
    is_same_visit = before.status in ("FAILED", "CANCELLED") or name in state.kept_loops
    return ExecutionRetried(
        step=name,
        visit=before.visit if is_same_visit else before.visit + 1,
        attempt=before.attempt + 1 if is_same_visit else 1,
        reason=reason,
        also=also,
    )


def _unfinished(state: ExecutionState) -> list[StepName]:
    return [
        name
        for name, step in state.steps.items()
        if step.is_unhandled or step.status == "CANCELLED"
    ]


def _with_failed_rows(state: ExecutionState) -> list[StepName]:
    """Unless something that began after them waits to go on."""
    return [] if state.tokens else list(state.kept_loops)


def _refuse_if_over(state: ExecutionState, what: str) -> None:
    if state.execution.status in TERMINAL:
        reason = f"is {state.execution.status.lower()} and {what}"
        raise StateRefuses(state.execution.execution_id, reason)
