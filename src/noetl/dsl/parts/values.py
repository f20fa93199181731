"""Assignments, conditions, credentials and business objects, from plain data."""

from typing import Literal, get_args

from noetl.domain.playbook.values import (
    Assignment,
    Condition,
    Credential,
    Emit,
    SetScope,
)
from noetl.domain.playbook.wording import shown
from noetl.dsl.fields import read
from noetl.dsl.language.shapes import is_template
from noetl.dsl.language.steps import EMIT
from noetl.dsl.nodes import Items, Mapping, Node, Scalar, to_plain
from noetl.dsl.problems import Problems
from noetl.dsl.templates import mentions_secrets

Bare = Literal["ctx", "task"]
"""What a name without a prefix means: it depends on where `set` stands."""

_SCOPES = get_args(SetScope)
_PLAIN_TRUTHS = frozenset({"true", "false", "1", "0", "yes", "no", "", "none", "null"})
_CREDENTIAL_NAMES = ("key", "credential", "name")
_CREDENTIAL_TYPES = ("type", "tool")
_CREDENTIAL_KEYS = frozenset({*_CREDENTIAL_NAMES, "type", "source", "service", "scope", "provider"})
_SECRET_FIX = "use the keychain in parameters of a tool; what is set or decided is recorded"


def assignments(node: Node | None, bare: Bare, problems: Problems) -> tuple[Assignment, ...]:
    if not isinstance(node, Mapping):
        return ()
    made = []
    for written, entry in node.entries.items():
        prefix, dot, rest = written.partition(".")
        scope: SetScope = next((each for each in _SCOPES if each == prefix), bare)
        if dot and prefix not in _SCOPES[:3]:
            message = f"`set` cannot write {shown(written)!r}: only ctx, iter and step have parts"
            problems.error(entry.key, message, f"write 'ctx.{shown(rest)}'")
            continue
        if written in _SCOPES[:3] or (dot and not rest):
            problems.error(entry.key, f"{shown(written)!r} names nothing", f"write '{prefix}.name'")
            continue
        refuse_secrets(entry.value, problems)
        name = rest if dot else written
        made.append(
            Assignment(scope=scope if dot else bare, name=name, value=to_plain(entry.value))
        )
    return tuple(made)


def refuse_secrets(node: Node, problems: Problems) -> None:
    """What is set or decided goes to the log, where no secret may be."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Items):
            waiting += each.nodes
        elif isinstance(each, Mapping):
            waiting += [entry.value for entry in each.entries.values()]
        elif isinstance(each.value, str) and mentions_secrets(each.value):
            problems.error(each, "a secret of the keychain would reach the log here", _SECRET_FIX)


def condition(node: Node | None, problems: Problems) -> Condition:
    """Without one, always."""
    if not isinstance(node, Scalar) or isinstance(node.value, bool):
        return node.value is not False if isinstance(node, Scalar) else True
    refuse_secrets(node, problems)
    text = node.text
    if not is_template(text) and text.strip().lower() not in _PLAIN_TRUTHS:
        message = f"the condition {shown(text)!r} is plain text and is never evaluated"
        problems.error(node, message, 'write it as a template: "{{ … }}"')
    return text


def credentials(node: Node | None) -> tuple[Credential, ...]:
    """`auth: name`, `auth: {type, key}`, or `auth: {alias: {type, key}, …}`."""
    if isinstance(node, Scalar) and node.value is not None:
        return (Credential(name=node.text),)
    if not isinstance(node, Mapping):
        return ()
    by_alias = not (_CREDENTIAL_KEYS & node.entries.keys())
    if not by_alias:
        return (_credential(node, None),)
    return tuple(_credential(entry.value, alias) for alias, entry in node.entries.items())


def _credential(node: Node, alias: str | None) -> Credential:
    if not isinstance(node, Mapping):
        name = node.text if isinstance(node, Scalar) and node.value is not None else None
        return Credential(name=name, alias=alias)
    plain = to_plain(node)
    named = next((key for key in _CREDENTIAL_NAMES if isinstance(plain.get(key), str)), None)
    typed = next((key for key in _CREDENTIAL_TYPES if isinstance(plain.get(key), str)), None)
    return Credential(
        name=plain.get(named) if named else None,
        alias=alias,
        type=plain.get(typed) if typed else None,
        options={key: value for key, value in plain.items() if key not in (named, typed)},
    )


def emits(node: Node | None, problems: Problems) -> tuple[Emit, ...]:
    if node is None:
        return ()
    made = []
    for each in node.nodes if isinstance(node, Items) else [node]:
        fields = read(each, EMIT, problems)
        kind = fields.text("object") if fields is not None else None
        if fields is not None and kind is not None:
            made.append(
                Emit(
                    object=kind,
                    id=fields.plain("id"),
                    status=fields.plain("status"),
                    attributes=fields.plain("attributes") or {},
                )
            )
    return tuple(made)
