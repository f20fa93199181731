"""Rules of tasks and of admission, from plain data, in every shape they are written in."""

from typing import cast

from noetl.domain.playbook.model import AdmitRule
from noetl.domain.playbook.task import (
    RETRY_ATTEMPTS,
    RETRY_DELAY_SECONDS,
    RETRY_MULTIPLIER,
    Action,
    Backoff,
    Break,
    Continue,
    Fail,
    Jump,
    Retry,
    Rule,
    TaskPolicy,
)
from noetl.domain.playbook.values import Assignment, Condition
from noetl.dsl.fields import Fields, read
from noetl.dsl.language.records import Record
from noetl.dsl.language.shapes import is_template
from noetl.dsl.language.steps import ADMIT, ADMIT_RULE, VERDICT
from noetl.dsl.language.tasks import ACTION, LEGACY_RETRY, RETRY_KEYS, RULE, TASK_POLICY
from noetl.dsl.nodes import Mapping, Node, Scalar, is_null
from noetl.dsl.parts.values import assignments, condition
from noetl.dsl.problems import Problems

ON_ERROR = "{{ output.status == 'error' }}"


def task_policy(node: Node | None, problems: Problems, place: tuple[str, int] | None) -> TaskPolicy:
    fields = None if is_null(node) or node is None else read(node, TASK_POLICY, problems)
    if fields is None:
        return TaskPolicy()
    rules: list[Rule] = []
    for each in fields.items("rules"):
        rule = _rule(each, problems)
        if rule is not None:
            if place is not None:
                problems.mark(("rule", *place, len(rules)), each)
                problems.mark(("jump", *place, len(rules)), _jump_target(each))
            rules.append(rule)
    return TaskPolicy(rules=tuple(rules), on_unmatched=fields.text("on_unmatched"))


def _jump_target(rule: Node) -> Node:
    waiting = [rule]
    for each in waiting:
        if isinstance(each, Mapping):
            to = each.get("to")
            if to is not None:
                return to
            waiting += [each.entries[key].value for key in ("then", "else") if key in each.entries]
    return rule


def legacy_retry(node: Node | None, problems: Problems) -> tuple[Rule, ...]:
    """`retry: {max_attempts: 3}` as the rule it stands for."""
    fields = None if node is None else read(node, LEGACY_RETRY, problems)
    if fields is None:
        return ()
    grows = fields.seconds("backoff_multiplier")
    action = Retry(
        attempts=fields.count("max_attempts") or RETRY_ATTEMPTS,
        backoff="fixed" if grows is None else "exponential",
        delay=_given(fields.seconds("initial_delay"), RETRY_DELAY_SECONDS),
        delay_max=fields.seconds("max_delay"),
        jitter=_jitter(fields),
        multiplier=_given(grows, RETRY_MULTIPLIER),
    )
    when = fields.get("retry_when")
    return (Rule(when=ON_ERROR if when is None else condition(when, problems), action=action),)


def admission(node: Node | None, problems: Problems) -> tuple[AdmitRule, ...]:
    fields = None if node is None else read(node, ADMIT, problems)
    if fields is None:
        return ()
    made = []
    for each in fields.items("rules"):
        parts = _when_and_then(each, ADMIT_RULE, "allow", problems)
        verdict = None if parts is None else _verdict(parts[1], problems)
        if parts is not None and verdict is not None:
            made.append(AdmitRule(when=parts[0], allow=verdict))
    return tuple(made)


def _verdict(node: Node | None, problems: Problems) -> bool | None:
    fields = None if node is None else read(node, VERDICT, problems)
    return None if fields is None or fields.get("allow") is None else fields.flag("allow")


def _rule(node: Node, problems: Problems) -> Rule | None:
    parts = _when_and_then(node, RULE, "do", problems)
    if parts is None:
        return None
    when, then = parts
    fields = None if then is None else read(then, ACTION, problems)
    if fields is None:
        return Rule(when=when, action=Continue())
    action = _action(fields, problems)
    return None if action is None else Rule(when=when, set=_set(fields, problems), action=action)


def _when_and_then(
    node: Node, record: Record, verb: str, problems: Problems
) -> tuple[Condition, Node | None] | None:
    """`when` and `then`; `else` with or without `then` inside; `else:` with `then` beside it."""
    fields = read(node, record, problems)
    if fields is None:
        return None
    then = fields.get("then")
    if "else" in fields.present:
        if "when" in fields.present:
            problems.error(node, f"{record.words} has `when` and `else`", "make it two rules")
            return None
        return True, _inside_else(fields.get("else"), then)
    if "when" not in fields.present:
        fix = f"add `when:` with a template, or write `else: {{then: {{{verb}: …}}}}`"
        problems.error(node, f"{record.words} needs `when` or `else`", fix)
        return None
    if is_null(fields.node.get("when")):
        problems.error(node, "`when` is empty", 'write a template: "{{ … }}"')
    if fields.get("when") is None:
        return None
    if "then" not in fields.present:
        problems.error(node, f"{record.words} needs `then`", f"add `then: {{{verb}: …}}`")
        return None
    return condition(fields.get("when"), problems), then


def _inside_else(alternative: Node | None, then: Node | None) -> Node | None:
    if isinstance(alternative, Mapping) and "then" in alternative.entries:
        return alternative.get("then")
    return then if alternative is None else alternative


def _set(fields: Fields, problems: Problems) -> tuple[Assignment, ...]:
    return (
        assignments(fields.get("set"), "ctx", problems)
        + _prefixed(fields.get("set_ctx"), "ctx", problems)
        + _prefixed(fields.get("set_iter"), "iter", problems)
    )


def _prefixed(node: Node | None, prefix: str, problems: Problems) -> tuple[Assignment, ...]:
    """`set_iter: {page: 2}` is `set: {iter.page: 2}`."""
    if not isinstance(node, Mapping):
        return ()
    start = f"{prefix}."
    entries = {
        key if key.startswith(start) else start + key: entry for key, entry in node.entries.items()
    }
    return assignments(Mapping(node.line, node.column, node.path, entries), "ctx", problems)


def _action(fields: Fields, problems: Problems) -> Action | None:
    word = fields.text("do") or "continue"
    if word != "retry":
        stray = next((key for key in RETRY_KEYS if key in fields.values), None)
        if stray is not None:
            message = f"{stray!r} has no effect with `do: {word}`"
            problems.warning(fields.values[stray], message, "remove it, or write `do: retry`")
    match word:
        case "retry":
            return _retry(fields)
        case "jump":
            return _jump(fields, problems)
        case "break":
            return Break()
        case "fail":
            return Fail()
        case _:
            return Continue()


def _jump(fields: Fields, problems: Problems) -> Jump | None:
    to = fields.text("to")
    if to is None:
        if "to" not in fields.present:
            message = "`do: jump` needs `to`"
            problems.error(fields.node, message, "add `to:` with a task of the same step")
        return None
    return Jump(to=to)


def _retry(fields: Fields) -> Retry:
    return Retry(
        attempts=fields.count("attempts") or RETRY_ATTEMPTS,
        backoff=cast(Backoff, fields.text("backoff") or "fixed"),
        delay=_given(fields.seconds("delay"), RETRY_DELAY_SECONDS),
        delay_max=fields.seconds("max_delay"),
        jitter=_jitter(fields),
        multiplier=_given(fields.seconds("multiplier"), RETRY_MULTIPLIER),
    )


def _given(value: float | str | None, otherwise: float) -> float | str:
    return otherwise if value is None else value


def _jitter(fields: Fields) -> Condition | float:
    node = fields.get("jitter")
    if not isinstance(node, Scalar) or node.value is None:
        return False
    if isinstance(node.value, str) and not is_template(node.value):
        return _given(fields.seconds("jitter"), 0.0)
    return node.value
