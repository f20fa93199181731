"""How facts about steps and their routing change the state.

A taken arc puts a token on its target, and entering a step takes tokens away: what is on its way
is in the state, so nothing is lost between two appends.
"""

from noetl.domain.events import ChildStarted, StepEntered, StepExited, StepSkipped
from noetl.domain.events.envelope import Envelope
from noetl.domain.events.values import Failure, Result
from noetl.domain.execution import chunks
from noetl.domain.execution.accumulator import Accumulator, FoldFunction
from noetl.domain.execution.names import all_assigned
from noetl.domain.execution.state import Child, FailedStep, StepOutcome, StepState
from noetl.domain.execution.tokens import put_tokens, take_tokens
from noetl.kernel.ids import CommandId, StageId, StepName

UNEXPLAINED = Failure(kind="unknown", message="the step failed and did not say why")


def entered(fold: Accumulator, event: StepEntered, envelope: Envelope) -> None:
    step = fold.state.steps.get(event.step)
    if step is not None and step.visit >= event.visit:
        fold.unmatched()
        return
    fold.state.execution.last_node_name = event.step
    fold.state.steps[event.step] = StepState(
        visit=event.visit, status="RUNNING", entered_event_id=envelope.event_id
    )
    if event.step not in fold.state.open_steps:
        fold.state.open_steps.append(event.step)
    take_tokens(fold.state, event.step, event.arrived_from)
    # Older visits will not be tried again, so what was kept for that goes.
    _forget_children(fold, event.step, event.visit - 1)
    fold.state.kept_calls.pop(event.step, None)
    fold.state.kept_loops.pop(event.step, None)


def exited(fold: Accumulator, event: StepExited, envelope: Envelope) -> None:
    if event.result is not None:
        fold.note_reference(event.result.reference)
    step = _leave(fold, event.step, event.visit, event.status)
    if step is None:
        return
    step.exited_event_id = envelope.event_id
    state = fold.state
    result = event.result or (step.outcome.result if step.outcome is not None else None)
    if result is not None:
        state.results = {**state.results, event.step: result}
    step.outcome = None
    chunks.given_back(state, event.step)
    state.ctx = all_assigned(state.ctx, event.writes)
    put_tokens(state, event.step, event.arcs)
    step.is_unhandled = event.status == "FAILED" and not event.handled
    if step.is_unhandled and state.failed is None:
        state.failed = FailedStep(event.step, event.error or UNEXPLAINED)
    if not event.arcs and not event.quiet:
        state.ended_in = event.step


def skipped(fold: Accumulator, event: StepSkipped, envelope: Envelope) -> None:
    """A step may end without having been entered: skipped ones never are."""
    step = _leave(fold, event.step, event.visit, "SKIPPED")
    if step is not None:
        step.exited_event_id = envelope.event_id
        if event.arrived_from:
            take_tokens(fold.state, event.step, event.arrived_from)
        else:
            fold.state.tokens.pop(event.step, None)
        fold.state.ctx = all_assigned(fold.state.ctx, event.writes)
        put_tokens(fold.state, event.step, event.arcs)


def child_started(fold: Accumulator, event: ChildStarted, envelope: Envelope) -> None:
    state = fold.state
    command = state.commands.get(envelope.command_id or CommandId(""))
    stage = state.stages.get(envelope.stage_id or StageId(""))
    asked_by = command or stage
    if asked_by is None:
        fold.unmatched()
        return
    state.children[event.cycle] = Child(event.child_execution_id, asked_by.step, asked_by.visit)


def work_ended(fold: Accumulator, name: StepName, visit: int, outcome: StepOutcome) -> None:
    """The work of a visit is done; what follows from it is the decider's to say.

    A visit that failed may be tried again: then it finds the children that it had.
    """
    step = fold.state.steps.get(name)
    if step is not None and step.visit == visit and step.exited_event_id is None:
        step.outcome = outcome
    if outcome.error is None:
        _forget_children(fold, name, visit)


def _forget_children(fold: Accumulator, name: StepName, visit_max: int) -> None:
    children = fold.state.children
    for cycle, child in list(children.items()):
        if child.step == name and child.visit <= visit_max:
            del children[cycle]


def outcome(result: Result | None, error: Failure | None = None) -> StepOutcome:
    return StepOutcome(result=result, error=error)


def _leave(fold: Accumulator, name: StepName, visit: int, status: str) -> StepState | None:
    step = fold.state.steps.get(name)
    if step is None or step.visit < visit:
        step = fold.state.steps[name] = StepState(visit=visit, status=status)
    elif step.visit > visit or step.exited_event_id is not None:
        fold.unmatched()
        return None
    step.status = status
    if name in fold.state.open_steps:
        fold.state.open_steps.remove(name)
    fold.state.execution.last_node_name = name
    return step


FOLDS: dict[type, FoldFunction] = {
    StepEntered: entered,
    StepExited: exited,
    StepSkipped: skipped,
    ChildStarted: child_started,
}
