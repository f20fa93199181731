"""What should happen next. `decide` reads state alone, never the event that woke it.

A decision's fact lands in the same append as its cause, so being woken twice asks nothing twice.
"""

from noetl.decider import chunks, loops
from noetl.decider.answers import Decided, Incomplete, Missing
from noetl.decider.arrivals import may_still_arrive
from noetl.decider.evaluate import holds
from noetl.decider.routing import result_of_step, skip_of
from noetl.decider.view import View
from noetl.decider.waits import timers_set
from noetl.domain.events import (
    CommandIssued,
    LoopDone,
    PlaybookCompleted,
    PlaybookFailed,
    StepEntered,
    StepExited,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure
from noetl.domain.execution.state import StepState
from noetl.domain.playbook.model import Step
from noetl.kernel.ids import CommandId, ExecutionId, StepName, loop_id
from noetl.templates.errors import TemplateError

PIPELINE = "task_sequence"
"""What a command's tool is called when it is several."""


def decide(view: View) -> list[Decided] | Missing:
    """The next events, none when everything waits, or what has to be fetched or stored first.

    Ask again after appending: what follows from these events is the next answer.
    """
    if view.state.execution.status != "RUNNING":
        return []
    try:
        return (
            _finished_loops(view)
            or _finished_steps(view)
            or chunks.passed_on(view)
            or _started_work(view)
            or timers_set(view)
            or _entered_steps(view)
            or _end(view)
        )
    except Incomplete as unfinished:
        return unfinished.missing


def command_id(execution: ExecutionId, step: StepName, visit: int, attempt: int) -> CommandId:
    """`execution/step/visit/iteration/try`; a command outside a loop is iteration 0."""
    return CommandId(f"{execution}/{step}/{visit}/0/{attempt}")


def _finished_loops(view: View) -> list[Decided]:
    decided: list[Decided] = []
    for work in view.state.loop_work.values():
        if loops.is_drained(work):
            decided += loops.closed(view, work)
    return decided


def _finished_steps(view: View) -> list[Decided]:
    """One at a time: what one step sets, the next one's guards must see."""
    for name in view.state.open_steps:
        step = view.plan.playbook.steps.get(name)
        state = view.state.steps[name]
        if step is not None and (state.outcome is not None or _does_nothing(step)):
            exited = chunks.ended(view, step, state)
            if exited is not None:
                return [exited]
    return []


def _started_work(view: View) -> list[Decided]:
    decided: list[Decided] = []
    for name in view.state.open_steps:
        step = view.plan.playbook.steps.get(name)
        if step is not None and not _does_nothing(step):
            decided += _work(view, step)
    return decided


def _work(view: View, step: Step) -> list[Decided]:
    state = view.state.steps[step.name]
    if step.loop is not None:
        name = loop_id(step.name, state.visit, state.attempt)
        return [] if name in view.state.loops else _loop(view, step, state)
    command = command_id(view.state.execution.execution_id, step.name, state.visit, state.attempt)
    if command in view.state.commands or state.outcome is not None:  # its chunks go first
        return []
    tool = PIPELINE if step.is_pipeline else step.tasks[0].kind
    issued = CommandIssued(
        step=step.name,
        tool=tool,
        visit=state.visit,
        attempt=state.attempt,
        attempts_max=view.attempts_max,
    )
    return [Decided(event=issued, command_id=command)]


def _loop(view: View, step: Step, state: StepState) -> list[Decided]:
    try:
        return loops.opened(view, step, state.visit, state.attempt)
    except TemplateError as error:
        failure = Failure(kind="template", message=f"loop of step {step.name!r}: {error}")
        started = loops.without_items(step, state.visit, state.attempt)
        done = LoopDone(
            loop_id=started.loop_id,
            step=step.name,
            status="failed",
            stats=LoopStats(total=0),
            visit=state.visit,
            error=failure,
        )
        return [Decided(event=started), Decided(event=done)]


def _entered_steps(view: View) -> list[Decided]:
    state = view.state
    if not state.steps and not state.tokens:
        return _enter(view, view.plan.playbook.entry, ())
    if state.failed is not None:  # what runs may end; nothing new begins
        return []
    return [
        decided
        for name, sources in state.tokens.items()
        if name in view.plan.playbook.steps
        and name not in state.open_steps
        and not may_still_arrive(view, name)
        for decided in _enter(
            view, name, tuple(sources) if name in view.plan.graph.joins else (sources[0],)
        )
    ]


def _enter(view: View, name: StepName, arrived_from: tuple[StepName, ...]) -> list[Decided]:
    step = view.plan.playbook.steps[name]
    before = view.state.steps.get(name)
    visit = 1 if before is None else before.visit + 1
    entered = Decided(event=StepEntered(step=name, visit=visit, arrived_from=arrived_from))
    try:
        if not _is_admitted(view, step):
            return [skip_of(view, step, visit, arrived_from)]
    except TemplateError as error:
        failure = Failure(kind="template", message=f"admission of step {name!r}: {error}")
        return [entered, _failed_at_once(name, visit, failure)]
    if visit > view.visits_max:
        return [entered, _failed_at_once(name, visit, _endless(view, name))]
    return [entered]


def _failed_at_once(name: StepName, visit: int, failure: Failure) -> Decided:
    """Entered, and failed before it does anything."""
    return Decided(event=StepExited(step=name, status="FAILED", visit=visit, error=failure))


def _endless(view: View, name: StepName) -> Failure:
    message = (
        f"step {name!r} was entered {view.visits_max:,} times and is taken for endless; check the"
        " `when` of the arcs that lead back to it, or allow more with NOETL_VISITS_MAX and retry"
    )
    return Failure(kind="unknown", message=message, code="endless")


def _is_admitted(view: View, step: Step) -> bool:
    """The first rule that holds decides. Raises TemplateError for one that cannot be judged."""
    for rule in step.policy.admit:
        if holds(rule.when, view.bindings(step.name)):
            return rule.allow
    return True


def _end(view: View) -> list[Decided]:
    state = view.state
    waiting = [name for name in state.tokens if name in view.plan.playbook.steps]
    if state.open_steps or (waiting and state.failed is None):
        return []
    if state.failed is not None:
        failed = PlaybookFailed(error=state.failed.error, step=state.failed.step)
        return [Decided(event=failed)]
    ended_in = state.ended_in
    result = result_of_step(view, ended_in)
    return [Decided(event=PlaybookCompleted(step=ended_in, result=result))]


def _does_nothing(step: Step) -> bool:
    return not step.tasks and step.loop is None
