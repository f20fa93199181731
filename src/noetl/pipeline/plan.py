"""What can be known of a step before any row runs: which parts are templates, and which are not."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from noetl.domain.playbook.model import Playbook, Step
from noetl.domain.playbook.task import PREVIOUS_TASK, Effects, Rule, Task
from noetl.domain.playbook.values import Credential, Seconds
from noetl.domain.playbook.wording import choices, nearest, shown
from noetl.pipeline.failures import failed
from noetl.templates.compiled import compiled, names_in
from noetl.templates.errors import TemplateError
from noetl.templates.layered import ERROR
from noetl.templates.places import OUTPUTS
from noetl.templates.render import is_template

PLANS_KEPT_MAX: Final = 256
WORKBOOK: Final = "workbook"

_PROGRAMS: Final = frozenset({"python", "spark"})
"""Kinds whose `code` is program text, where doubled braces may be the program's own."""

_WITH_CREDENTIALS_INSIDE: Final = {"transfer": ("source", "target")}

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RulePlan:
    rule: Rule
    needs_error: bool  # it only looks at the error: without one, it does not hold


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """A task with its templates apart from what is written out."""

    task: Task
    name: str  # of the task
    kind: str
    fixed: Mapping[str, Any]  # parameters without templates
    templated: Mapping[str, Any]
    code: tuple[tuple[Path, str], ...]  # program text with braces, by its place in the parameters
    input_of_step: Mapping[str, Any]  # as written: the task's own input may name it
    has_input_of_step: bool  # which has templates
    input_fixed: Mapping[str, Any]
    input_templated: Mapping[str, Any]  # without what comes from the step
    is_input_fixed: bool  # nothing is rendered or added when its turn comes
    auth: tuple[Credential, ...]
    auth_inside: tuple[str, ...]  # parameters that name a credential of their own
    effects: Effects | None
    timeout: Seconds | None
    rules: tuple[RulePlan, ...]
    is_simple: bool  # no rules, `set` or `emit`: an end needs no judging
    judges_input: bool  # rules or `set` look at the input


@dataclass(frozen=True, slots=True)
class StepPlan:
    playbook: Playbook
    step: Step
    tasks: tuple[TaskPlan, ...]
    positions: Mapping[str, int]  # of the tasks, by name

    def target(self, position: int, to: str) -> int:
        """Where a jump leads. Raises ToolFailed."""
        if to in self.positions:
            return self.positions[to]
        if to in PREVIOUS_TASK and position > 0:
            return position - 1
        here, names = self.tasks[position].name, choices(self.positions)
        message = f"{shown(here)!r} jumps to {shown(to)!r}, but this step has only {names}"
        raise failed("client_error", message)


class Plans:
    """Plans of the steps in use, found by the identity of the step."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, StepPlan] = OrderedDict()

    def of(self, playbook: Playbook, step: Step) -> StepPlan:
        known = self._kept.get(id(step))
        if known is not None and known.step is step and known.playbook is playbook:
            return known
        tasks = tuple(task_plan(playbook, step, task) for task in step.tasks)
        positions = {plan.name: at for at, plan in enumerate(tasks)}
        made = self._kept[id(step)] = StepPlan(playbook, step, tasks, positions)
        self._kept.move_to_end(id(step))
        if len(self._kept) > PLANS_KEPT_MAX:
            self._kept.popitem(last=False)
        return made


def task_plan(playbook: Playbook, step: Step, task: Task) -> TaskPlan:
    """A task of the workbook whose name is a template stays a `workbook` until its turn comes."""
    if task.kind == WORKBOOK and not has_template(task.parameters.get("name")):
        inner = playbook.workbook.get(str(task.parameters.get("name")))
        if inner is not None and inner.task.kind != WORKBOOK:
            return _planned(step, task, inner.task)
    return _planned(step, task, task)


def from_workbook(playbook: Playbook, step: Step, task: Task, name: Any) -> TaskPlan:
    """Raises ToolFailed when there is no such task that could run."""
    found = playbook.workbook.get(str(name))
    if found is None:
        close = nearest(str(name), playbook.workbook)
        known = f"did you mean {close!r}?" if close else f"it has {choices(playbook.workbook)}"
        raise failed("not_found", f"the workbook has no task {shown(str(name))!r}; {known}")
    if found.task.kind == WORKBOOK:
        message = f"the workbook's task {shown(str(name))!r} is a workbook task itself"
        raise failed("client_error", f"{message}; give it a tool")
    return _planned(step, task, found.task)


def has_template(value: Any) -> bool:
    if isinstance(value, str):
        return is_template(value)
    if isinstance(value, dict):
        return any(has_template(item) for item in value.values())
    return isinstance(value, list) and any(has_template(item) for item in value)


def placed(parameters: dict[str, Any], path: Path, text: str) -> dict[str, Any]:
    """A copy with the text at the path."""
    first, *rest = path
    inner = placed(parameters[first], tuple(rest), text) if rest else text
    return {**parameters, first: inner}


def _planned(step: Step, task: Task, tool: Task) -> TaskPlan:
    """`tool` is the task itself, or the workbook's: then its inputs are defaults."""
    parameters, code = _without_code(tool)
    given = {**tool.input, **step.input, **task.input}
    of_step = step.input.keys() - task.input.keys()
    templated = {
        key: value for key, value in given.items() if key not in of_step and has_template(value)
    }
    gets_item = tool.kind == "python" and not step.is_pipeline
    policy_set = [each.value for rule in task.policy.rules for each in rule.set]
    judged = [rule.when for rule in task.policy.rules] + policy_set
    judged += [each.value for each in task.set]
    judged += [part for emit in task.emit for part in (emit.id, emit.status, emit.attributes)]
    return TaskPlan(
        task=task,
        name=task.name,
        kind=tool.kind,
        fixed={key: value for key, value in parameters.items() if not has_template(value)},
        templated={key: value for key, value in parameters.items() if has_template(value)},
        code=code,
        input_of_step=step.input,
        has_input_of_step=has_template(step.input),
        input_fixed={key: value for key, value in given.items() if not has_template(value)},
        input_templated=templated,
        is_input_fixed=not templated and not has_template(step.input) and not gets_item,
        auth=task.auth or tool.auth,
        auth_inside=_WITH_CREDENTIALS_INSIDE.get(tool.kind, ()),
        effects=task.effects or tool.effects,
        timeout=tool.timeout if task.timeout is None else task.timeout,
        rules=tuple(RulePlan(rule, _needs_error(rule.when)) for rule in task.policy.rules),
        is_simple=not (task.policy.rules or task.set or task.emit),
        judges_input=bool(_names(judged) & {"input", "args", *given}),
    )


def _needs_error(when: Any) -> bool:
    """`{{ output.error.retryable }}` and the like, which come to nothing when all went well."""
    if not isinstance(when, str) or not is_template(when):
        return False
    try:
        look = compiled(when, False).look
    except TemplateError:  # it will be passed over when its turn comes
        return False
    return look is not None and look.name in OUTPUTS and look.keys[:1] == (ERROR,)


def _without_code(tool: Task) -> tuple[dict[str, Any], tuple[tuple[Path, str], ...]]:
    """Code with braces is rendered apart from the other parameters, by rules of its own."""
    parameters, code = tool.parameters, []
    for path in (("code",), ("script", "source", "code")):
        if path == ("code",) and tool.kind not in _PROGRAMS:
            continue
        text = _at(parameters, path)
        if isinstance(text, str) and is_template(text):
            code.append((path, text))
            parameters = placed(parameters, path, "")
    return parameters, tuple(code)


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _names(values: list[Any]) -> frozenset[str]:
    found: set[str] = set()
    for text in _templates(values):
        try:
            found |= names_in(text)
        except TemplateError:  # it will be reported when it is rendered
            continue
    return frozenset(found)


def _templates(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if is_template(value):
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _templates(item)
    elif isinstance(value, list):
        for item in value:
            yield from _templates(item)
