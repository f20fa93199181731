"""Steps, from plain data."""

from noetl.domain.events.loop import LoopMode
from noetl.domain.playbook.loop import Loop
from noetl.domain.playbook.model import FailureMode, Step, StepPolicy
from noetl.domain.playbook.values import Output
from noetl.domain.playbook.wording import shown
from noetl.dsl.fields import Fields, read
from noetl.dsl.language.steps import FAILURE, STEP, STEP_POLICY, STEP_SPEC
from noetl.dsl.nodes import Items, Node, Scalar
from noetl.dsl.parts.loops import loop
from noetl.dsl.parts.outputs import output
from noetl.dsl.parts.policies import admission
from noetl.dsl.parts.routes import router
from noetl.dsl.parts.tasks import tasks
from noetl.dsl.parts.values import assignments, emits
from noetl.dsl.problems import Problems
from noetl.kernel.ids import StepName


def steps(
    nodes: list[Node], loop_mode: LoopMode | None, problems: Problems
) -> dict[StepName, Step]:
    """Steps by name; those without one, or with one that is taken, are read for their problems."""
    made: dict[StepName, Step] = {}
    lines: dict[StepName, int] = {}
    for index, node in enumerate(nodes):
        fields = read(node, STEP, problems)
        if fields is None:
            continue
        name = StepName(fields.text("step") or "")
        if name and name not in made:
            made[name] = _step(name, fields, loop_mode, problems)
            lines[name] = node.line
            continue
        _step(StepName(f"{name}#{index}"), fields, loop_mode, problems)
        if name:
            message = f"the step {shown(name)!r} exists already, in line {lines[name]}"
            problems.error(fields.values["step"], message, "give each step its own name")
    return made


def _step(name: StepName, fields: Fields, loop_mode: LoopMode | None, problems: Problems) -> Step:
    problems.mark(("step", name), fields.get("step") or fields.node)
    loop_node = fields.get("loop")
    if loop_node is not None:
        problems.mark(("loop", name), loop_node)
        problems.mark(("fanout", name), loop_node)
    if fields.get("output") is not None:
        problems.mark(("output", name), fields.values["output"])
    tool = fields.get("tool")
    spec_node = fields.get("spec")
    spec = None if spec_node is None else read(spec_node, STEP_SPEC, problems)
    made_loop = loop(loop_node, spec, loop_mode, problems)
    return Step(
        name=name,
        tasks=tasks(tool, name, problems),
        is_pipeline=isinstance(tool, Items),
        description=fields.text("desc"),
        input=fields.mapping("input"),
        loop=made_loop,
        set=assignments(fields.get("set"), "ctx", problems),
        output=output(fields.get("output"), problems) or Output(),
        emit=emits(fields.get("emit"), problems),
        next=router(fields.get("next"), name, problems),
        policy=_policy(spec, made_loop, problems),
        timeout=None if spec is None else spec.seconds("timeout"),
    )


def _policy(spec: Fields | None, over: Loop | None, problems: Problems) -> StepPolicy:
    node = None if spec is None else spec.get("policy")
    fields = None if node is None else read(node, STEP_POLICY, problems)
    if fields is None:
        return StepPolicy()
    failure = _failure(fields, problems)
    return StepPolicy(
        admit=admission(fields.get("admit"), problems),
        failure=failure or "fail_fast",
        is_failure_given=failure is not None and over is not None and over.mode == "cursor",
        lifecycle=fields.mapping("lifecycle"),
        emit=fields.mapping("emit"),
    )


def _failure(policy: Fields, problems: Problems) -> FailureMode | None:
    """As `failure: {mode: …}`, or `failure: …` for short."""
    node = policy.get("failure")
    if node is None:
        return None
    told = policy.text("failure")
    if not isinstance(node, Scalar):
        fields = read(node, FAILURE, problems)
        told = None if fields is None else fields.text("mode")
    if told is None:
        return None
    return "continue" if told == "continue" else "fail_fast"
