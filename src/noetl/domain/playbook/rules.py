"""What makes a well-formed playbook meaningless, and the words to say so."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from noetl.domain.playbook.graph import Graph, graph_of
from noetl.domain.playbook.keeping import is_renamed, output_of, place_of
from noetl.domain.playbook.loop import Fanout
from noetl.domain.playbook.model import END, Arc, Playbook
from noetl.domain.playbook.task import PREVIOUS_TASK, Jump, Task
from noetl.domain.playbook.wording import choices, nearest, shown

Spot = tuple[str | int, ...]
"""What a finding is about: `("arc", "load", 0)`. Whoever read the text knows where that stands."""

Severity = Literal["error", "warning"]

RESERVED_NAMES = frozenset(
    {
        "_attempt",
        "_prev",
        "_task",
        "args",
        "catalog_id",
        "ctx",
        "env",
        "event",
        "execution_id",
        "fanin",
        "frame",
        "input",
        "iter",
        "job",
        "keychain",
        "loop",
        "now",
        "outcome",
        "output",
        "parent_execution_id",
        "payload",
        "results",
        "steps",
        "workload",
    }
)
"""Names that templates give to something else than a step."""

_NAMES_LISTED_MAX = 10
_NO_FANOUT = Fanout()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    spot: Spot
    message: str
    fix: str
    severity: Severity = "error"


_WORDS_OF_FAILURE = ("error", "event", "fail", "outcome", "status")


def findings(playbook: Playbook) -> list[Finding]:
    """Everything that is wrong with the meaning, in the order of the rules below."""
    graph = graph_of(playbook)
    return [finding for rule in _RULES for finding in rule(playbook, graph)]


def _named_steps_exist(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    executor = playbook.executor
    named = {"entry_step": executor.entry_step, "final_step": executor.final_step}
    for key, name in named.items():
        if name is not None and name not in playbook.steps:
            yield Finding(
                spot=("executor", key),
                message=f"{key} names the step {shown(name)!r}, which does not exist",
                fix=_offer(name, playbook.steps, "a step of this playbook"),
            )


def _arcs_lead_somewhere(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        for index, arc in enumerate(step.next.arcs):
            if arc.step not in playbook.steps and arc.step != END:
                yield Finding(
                    spot=("arc", step.name, index),
                    message=f"the arc of step {shown(step.name)!r} leads to the step"
                    f" {shown(arc.step)!r}, which does not exist",
                    fix=_offer(arc.step, [*playbook.steps, END], "an existing step, or `end`"),
                )


def _arcs_can_be_taken(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        if step.next.mode != "exclusive":
            continue
        decided = next((i for i, arc in enumerate(step.next.arcs) if _always(arc)), None)
        later = () if decided is None else step.next.arcs[decided + 1 :]
        for index, arc in enumerate(later, start=1 + (decided or 0)):
            if _is_for_failures(arc):  # unconditional arcs are passed over when a step failed
                continue
            when = "never taken" if _always(arc) else "taken only when the step fails"
            yield Finding(
                spot=("arc", step.name, index),
                message=f"this arc of step {shown(step.name)!r} is {when}: the one before it"
                " has no condition and comes first",
                fix="give the earlier arc a `when`, put it last, or use `spec: {mode: inclusive}`",
                severity="warning",
            )
            break


def _arc_events_happen(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        for index, arc in enumerate(step.next.arcs):
            if arc.on == "loop.done" and step.loop is None:
                yield Finding(
                    spot=("arc", step.name, index),
                    message=f"`on: loop.done` never happens: step {shown(step.name)!r} has no loop",
                    fix="use `on: call.done`, or leave `on` out",
                    severity="warning",
                )


def _steps_are_reached(playbook: Playbook, graph: Graph) -> Iterator[Finding]:
    for name in graph.unreachable:
        yield Finding(
            spot=("step", name),
            message=f"step {shown(name)!r} is never reached from {shown(playbook.entry)!r}",
            fix="add an arc that leads to it, or remove it",
            severity="warning",
        )


def _step_names_are_free(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for name, step in playbook.steps.items():
        if name in RESERVED_NAMES:
            yield Finding(
                spot=("step", name),
                message=f"templates cannot read the result of a step named {name!r}:"
                f" {{{{ {name} }}}} means something else",
                fix="choose another name",
                severity="warning",
            )
        if step.loop is not None and step.loop.iterator in RESERVED_NAMES:
            yield Finding(
                spot=("loop", name),
                message=f"the iterator {step.loop.iterator!r} hides a name that templates need",
                fix="choose another name for `iterator`",
                severity="warning",
            )


def _task_names_are_unique(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        seen: set[str] = set()
        for index, task in enumerate(step.tasks):
            if task.name in seen:
                yield Finding(
                    spot=("task", step.name, index),
                    message=f"step {shown(step.name)!r} has two tasks named {shown(task.name)!r}",
                    fix="give each task of a step its own name",
                )
            seen.add(task.name)


def _jumps_land(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        names = [task.name for task in step.tasks]
        for index, task in enumerate(step.tasks):
            for number, rule in enumerate(task.policy.rules):
                problem = _jump_problem(rule.action, names, index)
                if problem is not None:
                    message, fix = problem
                    spot = ("jump", step.name, index, number)
                    yield Finding(spot=spot, message=message, fix=fix)


def _jump_problem(action: object, names: list[str], index: int) -> tuple[str, str] | None:
    if not isinstance(action, Jump) or action.to in names:
        return None
    if action.to not in PREVIOUS_TASK:
        message = f"the jump leads to the task {shown(action.to)!r}, which is not in this step"
        return message, _offer(action.to, names, "a task of the same step")
    if index == 0:
        return "the first task has no previous one to jump to", "name the task to jump to"
    return None


def _rules_can_match(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        for index, task in enumerate(step.tasks):
            number = _first_that_always_matches(task)
            if number is not None and number + 1 < len(task.policy.rules):
                yield Finding(
                    spot=("rule", step.name, index, number + 1),
                    message="this rule is never asked: the rule before it always matches",
                    fix="put `else` last",
                    severity="warning",
                )


def _workbook_tasks_exist(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        for index, task in enumerate(step.tasks):
            name = task.parameters.get("name") if task.kind == "workbook" else None
            if isinstance(name, str) and "{{" not in name and name not in playbook.workbook:
                yield Finding(
                    spot=("task", step.name, index),
                    message=f"the workbook has no task named {shown(name)!r}",
                    fix=_offer(name, playbook.workbook, "a name from `workbook`"),
                )


def _fanout_options_apply(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        loop = step.loop
        if loop is not None and loop.fanout != _NO_FANOUT and loop.mode != "fanout":
            yield Finding(
                spot=("fanout", step.name),
                message=f"`fanout` has no effect: the loop of step {shown(step.name)!r}"
                f" runs in mode {loop.mode}",
                fix="set `loop.spec.mode: fanout`, or remove `fanout`",
            )


def _aliases_are_free(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    seen: set[str] = {*playbook.steps, *RESERVED_NAMES}
    for step in playbook.steps.values():
        alias = output_of(step).name
        if alias is not None and alias in seen:
            yield Finding(
                spot=("output", step.name),
                message=f"`as: {shown(alias)}` of step {shown(step.name)!r} is the name of"
                " something else",
                fix="choose another name",
            )
        seen.add(alias or step.name)


def _outputs_apply(playbook: Playbook, _graph: Graph) -> Iterator[Finding]:
    for step in playbook.steps.values():
        if step.loop is not None and place_of(step.output.store) != "by_size":
            yield Finding(
                spot=("output", step.name),
                message=f"`store` has no effect: the rows of the loop {shown(step.name)!r} are"
                " kept by frames",
                fix="remove it",
                severity="warning",
            )
        for index, task in enumerate(step.tasks if step.is_pipeline else ()):
            if task.output is not None and is_renamed(task.output):
                yield Finding(
                    spot=("task", step.name, index),
                    message=f"`as` has no effect in task {shown(task.name)!r} of a pipeline: its"
                    " result goes by its own name",
                    fix="put `output` beside `tool`",
                    severity="warning",
                )


def _always(arc: Arc) -> bool:
    return arc.when is True and arc.on is None


def _is_for_failures(arc: Arc) -> bool:
    """By its words: an arc that asks how the step ended means to be taken when it failed."""
    return arc.on is not None or any(word in str(arc.when) for word in _WORDS_OF_FAILURE)


def _first_that_always_matches(task: Task) -> int | None:
    rules = task.policy.rules
    return next((number for number, rule in enumerate(rules) if rule.when is True), None)


def _offer(word: str, known: Iterable[str], otherwise: str) -> str:
    names = list(known)
    close = nearest(word, names)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"use {otherwise}: {choices(names[:_NAMES_LISTED_MAX])}" if names else f"use {otherwise}"


_RULES: tuple[Callable[[Playbook, Graph], Iterator[Finding]], ...] = (
    _named_steps_exist,
    _arcs_lead_somewhere,
    _arcs_can_be_taken,
    _arc_events_happen,
    _steps_are_reached,
    _step_names_are_free,
    _task_names_are_unique,
    _jumps_land,
    _rules_can_match,
    _workbook_tasks_exist,
    _fanout_options_apply,
    _aliases_are_free,
    _outputs_apply,
)
