"""Tools and pipelines, from plain data: a mapping, or a list of tasks, named or not."""

from typing import Any, cast

import msgspec

from noetl.domain.playbook.task import Effects, Task, TaskPolicy
from noetl.domain.playbook.values import Output
from noetl.domain.playbook.wording import choices, nearest, shown
from noetl.dsl.fields import Fields, read
from noetl.dsl.language.kinds import KINDS, RUNNING_KINDS, kind_of, record_of
from noetl.dsl.language.tasks import RETIRED_TASK_KEYS, TASK_SPEC
from noetl.dsl.nodes import Items, Mapping, Node, Scalar, described, is_null, to_plain
from noetl.dsl.parts.outputs import output, selections
from noetl.dsl.parts.policies import legacy_retry, task_policy
from noetl.dsl.parts.values import assignments, credentials, emits
from noetl.dsl.problems import Problems
from noetl.dsl.python_code import check_python


def tasks(node: Node | None, step: str, problems: Problems) -> tuple[Task, ...]:
    if node is None:
        return ()
    if not isinstance(node, Items):
        found = task(node, step, problems, (step, 0))
        return () if found is None else (found,)
    if not node.nodes:
        problems.error(node, "the pipeline has no tasks", "add a task, or leave `tool` out")
    made: list[Task] = []
    for index, each in enumerate(node.nodes):
        name, inner = _label(each)
        found = task(inner, name or f"task_{index}", problems, (step, len(made)))
        if found is not None:
            made.append(found)
    return tuple(made)


def task(
    node: Node, name: str, problems: Problems, place: tuple[str, int] | None = None
) -> Task | None:
    """One task; `name` is used unless it has its own. `place` is its step and its number there."""
    if not isinstance(node, Mapping):
        message = f"a task must be a mapping, not {described(node)}"
        problems.error(node, message, "write `kind:` and the tool's parameters")
        return None
    kind = _kind(node, problems)
    if kind is None:
        return Task(name=name, kind="")  # so that jumps to it are not reported too
    spec = node.get("spec")
    fields = read(_hoisted(node, spec, problems), record_of(kind), problems)
    if fields is None:
        return None
    if not kind_of(kind).runs:
        message = f"{kind!r} is part of the language, but this engine has no such tool"
        fix = f"a step with it fails; tools that run: {choices(RUNNING_KINDS)}"
        problems.warning(node, message, fix)
    if kind == "python":
        check_python(fields.get("code"), problems)
    if place is not None:
        problems.mark(("task", *place), node)
    own = fields.text("name") if "name" not in kind_of(kind).parameters else None
    policy_node = spec.get("policy") if isinstance(spec, Mapping) else None
    policy = task_policy(policy_node, problems, place)
    return _task(own or name, kind, fields, _with_retry(policy, fields, problems), problems)


def _task(name: str, kind: str, fields: Fields, policy: TaskPolicy, problems: Problems) -> Task:
    kept = output(fields.get("output"), problems)
    chosen = selections(fields.get("output_select"), problems)
    if chosen:
        kept = kept or Output()
        kept = msgspec.structs.replace(kept, select=kept.select + chosen)
    return Task(
        name=name,
        kind=kind,
        parameters=_parameters(kind, fields),
        input=fields.mapping("input"),
        auth=credentials(fields.get("auth")),
        set=assignments(fields.get("set"), "task", problems),
        policy=policy,
        output=kept,
        emit=emits(fields.get("emit"), problems),
        effects=cast(Effects | None, fields.text("effects")),
        timeout=fields.seconds("timeout"),
    )


def _with_retry(policy: TaskPolicy, fields: Fields, problems: Problems) -> TaskPolicy:
    legacy = legacy_retry(fields.get("retry"), problems)
    return msgspec.structs.replace(policy, rules=policy.rules + legacy) if legacy else policy


def _kind(node: Mapping, problems: Problems) -> str | None:
    written = node.get("kind")
    if is_null(written) or written is None:
        old = node.entries.get("type")
        if old is not None:
            problems.error(old.key, "'type' is not a key of a tool", RETIRED_TASK_KEYS["type"])
        else:
            fix = f"add `kind:` with {choices(RUNNING_KINDS)}"
            problems.error(node, "a tool needs 'kind'", fix)
        return None
    if isinstance(written, Scalar) and written.text in KINDS:
        return written.text
    word = written.text if isinstance(written, Scalar) else described(written)
    if isinstance(written, Scalar) and problems.is_other_kind(word):
        return word
    close = nearest(word, KINDS)
    known = f"known kinds: {choices(RUNNING_KINDS)}"
    fix = known if close is None else f"did you mean {close!r}? {known}"
    problems.error(written, f"there is no tool kind {shown(word)!r}", fix)
    return None


def _label(node: Node) -> tuple[str | None, Node]:
    """`- fetch: {kind: http}`, `- name: fetch` or no name at all."""
    if not isinstance(node, Mapping):
        return None, node
    if len(node.entries) == 1 and "kind" not in node.entries:
        label, entry = next(iter(node.entries.items()))
        if isinstance(entry.value, Mapping):
            return label, entry.value
    name = node.get("name")
    is_text = isinstance(name, Scalar) and isinstance(name.value, str) and name.value != ""
    return (name.text if is_text and isinstance(name, Scalar) else None), node


def _hoisted(node: Mapping, spec: Node | None, problems: Problems) -> Mapping:
    """Parameters may stand under `spec` too; those beside it win."""
    fields = read(spec, TASK_SPEC, problems) if spec is not None and not is_null(spec) else None
    if fields is None or not isinstance(spec, Mapping) or not fields.extra:
        return node
    inner = {key: spec.entries[key] for key in fields.extra}
    return Mapping(node.line, node.column, node.path, inner | node.entries)


def _parameters(kind: str, fields: Fields) -> dict[str, Any]:
    """The tool's own keys under their main spelling; an empty one counts as left out."""
    own = kind_of(kind).parameters
    known = {
        name: to_plain(value)
        for name, value in fields.values.items()
        if name in own and (name != "input" or isinstance(value, Scalar))
    }
    return known | {name: to_plain(value) for name, value in fields.extra.items()}
