"""How a step ends: what `set` writes, which arcs are taken, whether a failure was taken up."""

from typing import Any

from noetl.decider.answers import Decided
from noetl.decider.evaluate import check_writes, evaluated, holds, targets_of
from noetl.decider.fanout import FANIN
from noetl.decider.view import View
from noetl.domain.events import StepExited, StepSkipped
from noetl.domain.events.values import Failure, Result
from noetl.domain.execution.names import assigned
from noetl.domain.execution.state import StepOutcome, StepState
from noetl.domain.playbook.model import Arc, Step
from noetl.kernel.ids import StepName
from noetl.templates.bindings import Bindings
from noetl.templates.errors import TemplateError
from noetl.templates.layered import Outcome, plain_result, step_result
from noetl.templates.lookup import MISSING, look_up
from noetl.templates.places import for_arc, for_loop_done, for_set
from noetl.templates.recorded import inline_result

_SUCCESS_EVENTS = frozenset({"call.done", "step.done", "step.exit"})
_FAILURE_EVENTS = frozenset({"call.error", "step.failed", "step.exit"})
NOTHING_DONE = StepOutcome(result=inline_result(None))
"""What a step without a tool comes to."""


class _Writes:
    """Names written so far, and `ctx` as it is with them."""

    def __init__(self, ctx: dict[str, Any]) -> None:
        self.ctx = ctx
        self.names: dict[str, Any] = {}

    def put(self, name: str, value: Any) -> None:
        self.names[name] = value
        self.ctx = assigned(self.ctx, name, value)


def exit_of(view: View, step: Step, state: StepState) -> Decided:
    """The end of a visit whose work is over. A template that fails makes the step fail."""
    outcome = state.outcome or NOTHING_DONE
    try:
        return _routed(view, step, state.visit, outcome)
    except TemplateError as error:
        failure = Failure(kind="template", message=f"step {step.name!r}: {error}")
        failed = StepOutcome(result=outcome.result, error=failure, loop_length=outcome.loop_length)
        return _routed_after_bad_template(view, step, state.visit, failed)


def skip_of(view: View, step: Step, visit: int, arrived_from: tuple[StepName, ...]) -> Decided:
    """A step that was not admitted: its branch goes on as if it had done nothing.

    Raises TemplateError when its arcs cannot be judged.
    """
    envelope = Outcome(status="skipped")
    event = {"name": "step.exit", "step": step.name, "status": "SKIPPED"}
    writes = _Writes(view.state.ctx)
    at_arcs = for_arc(view.bindings(step.name), envelope, event)
    taken, raised = _taken(step, at_arcs, _SUCCESS_EVENTS, failed=False)
    if raised is not None and not taken:
        raise raised
    for arc in taken:
        for name, value in targets_of(arc.set):
            at_arc = for_arc(view.bindings(step.name, writes.ctx), envelope, event)
            writes.put(name, evaluated(value, at_arc))
    check_writes(writes.names)
    skipped = StepSkipped(
        step=step.name,
        visit=visit,
        reason="its admission rules refused it",
        arrived_from=arrived_from,
        arcs=tuple(arc.step for arc in taken if arc.step in view.plan.playbook.steps),
        writes=writes.names,
    )
    return Decided(event=skipped)


def _routed(view: View, step: Step, visit: int, outcome: StepOutcome) -> Decided:
    envelope = view.outcome(outcome.result, outcome.error)
    writes = _Writes(view.state.ctx)
    tolerated = step.policy.failure == "continue"
    failed = outcome.error is not None and not tolerated
    if outcome.error is None:
        for name, value in targets_of(step.set):
            at_step = view.bindings(step.name, writes.ctx, outcome.result)
            at_step = at_step.define(_fanin(outcome, envelope))
            writes.put(name, evaluated(value, for_set(at_step, envelope)))
    at_arcs = _arc_bindings(view, step.name, outcome, envelope, writes.ctx)
    taken, raised = _taken(step, at_arcs, _event_names(outcome), failed=failed)
    if raised is not None and not taken and outcome.error is None:
        raise raised  # after a failure the guard may have wanted a result that is not there
    for arc in taken:
        for name, value in targets_of(arc.set):
            at_arc = _arc_bindings(view, step.name, outcome, envelope, writes.ctx)
            writes.put(name, evaluated(value, at_arc))
    check_writes(writes.names)
    arcs = tuple(dict.fromkeys(arc.step for arc in taken if arc.step in view.plan.playbook.steps))
    return Decided(
        event=StepExited(
            step=step.name,
            status="COMPLETED" if outcome.error is None else "FAILED",
            visit=visit,
            error=outcome.error,
            arcs=arcs,
            writes=writes.names,
            handled=outcome.error is not None and (tolerated or bool(taken)),
            quiet=not taken and step.next.on_no_match == "quiet" and bool(step.next.arcs),
        )
    )


def _routed_after_bad_template(view: View, step: Step, visit: int, outcome: StepOutcome) -> Decided:
    """The failure may still be taken up by an arc; a second bad template ends it."""
    try:
        return _routed(view, step, visit, outcome)
    except TemplateError:
        event = StepExited(step=step.name, status="FAILED", visit=visit, error=outcome.error)
        return Decided(event=event)


def _taken(
    step: Step, bindings: Bindings, names: frozenset[str], *, failed: bool
) -> tuple[list[Arc], TemplateError | None]:
    """The arcs to follow, and the first guard that could not be judged.

    After a failure only arcs that were written for it count: guarded ones that are true.
    """
    taken: list[Arc] = []
    raised: TemplateError | None = None
    for arc in step.next.arcs:
        is_guarded = arc.when is not True or arc.on is not None
        if (failed and not is_guarded) or (arc.on is not None and arc.on not in names):
            continue
        try:
            is_true = holds(arc.when, bindings)
        except TemplateError as error:
            raised = raised or error
            continue
        if is_true:
            taken.append(arc)
            if step.next.mode == "exclusive":
                break
    return taken, raised


def _arc_bindings(
    view: View, step: StepName, outcome: StepOutcome, envelope: Outcome, ctx: dict[str, Any]
) -> Bindings:
    bindings = view.bindings(step, ctx, outcome.result)
    names = _event_names(outcome)
    event = {
        "name": _main_name(outcome, names),
        "step": step,
        "payload": step_result(envelope.result),
        "status": envelope.status,
        "timestamp": view.state.now,
    }
    if outcome.loop_length is None:
        return for_arc(bindings, envelope, event)
    at_end = for_loop_done(bindings, envelope, event, outcome.loop_length)
    return at_end.define(_fanin(outcome, envelope))


def _fanin(outcome: StepOutcome, envelope: Outcome) -> dict[str, Any]:
    """`fanin` after a fan-out; everywhere else the name is free."""
    if outcome.loop_length is None:
        return {}
    found = look_up(plain_result(envelope.result), FANIN)
    return {} if found is MISSING else {FANIN: found}


def _event_names(outcome: StepOutcome) -> frozenset[str]:
    names = _SUCCESS_EVENTS if outcome.error is None else _FAILURE_EVENTS
    # A loop that failed is not done: guards on `loop.done` must not take its failure for an end.
    is_done_loop = outcome.loop_length is not None and outcome.error is None
    return names | {"loop.done"} if is_done_loop else names


def _main_name(outcome: StepOutcome, names: frozenset[str]) -> str:
    if "loop.done" in names:
        return "loop.done"
    return "call.done" if outcome.error is None else "call.error"


def result_of_step(view: View, step: StepName | None) -> Result | None:
    return None if step is None else view.state.results.get(step)
