"""Metadata, executor, keychain and workbook, from plain data."""

from typing import Literal, cast

from noetl.domain.events.loop import LoopMode
from noetl.domain.playbook.model import Executor, KeychainEntry, Metadata
from noetl.domain.playbook.task import WorkbookTask
from noetl.domain.playbook.wording import choices, shown
from noetl.dsl.fields import Fields, read
from noetl.dsl.language.document import (
    EXECUTOR,
    EXECUTOR_SPEC,
    KEYCHAIN_ENTRY,
    KEYCHAIN_KINDS,
    KEYCHAIN_KINDS_OF_OTHERS,
    KEYCHAIN_LEGACY,
    METADATA,
    WORKBOOK_TASK,
)
from noetl.dsl.nodes import Items, Mapping, Node, Scalar, to_plain
from noetl.dsl.parts.tasks import task
from noetl.dsl.problems import Problems
from noetl.kernel.ids import StepName

_ENTRY_KEYS = frozenset({"name", "kind", "scope", "auto_renew"})


def metadata(node: Node | None, problems: Problems) -> Metadata:
    fields = None if node is None else read(node, METADATA, problems)
    if fields is None:
        return Metadata(name="")
    own = ("name", "path", "description", "version", "tags", "labels")
    known = {name: fields.plain(name) for name in fields.values if name not in own}
    return Metadata(
        name=fields.text("name") or "",
        path=fields.text("path"),
        description=fields.text("description"),
        version=fields.text("version"),
        tags=_tags(fields.get("tags")),
        labels=fields.mapping("labels"),
        extra=known | {name: to_plain(value) for name, value in fields.extra.items()},
    )


def _tags(node: Node | None) -> tuple[str, ...]:
    """A list, or text with commas."""
    if isinstance(node, Items):
        return tuple(each.text for each in node.nodes if isinstance(each, Scalar))
    words = node.text.split(",") if isinstance(node, Scalar) else []
    return tuple(word.strip() for word in words if word.strip())


def executor(node: Node | None, problems: Problems) -> Executor:
    fields = None if node is None else read(node, EXECUTOR, problems)
    if fields is None:
        return Executor()
    spec_node = fields.get("spec")
    spec = None if spec_node is None else read(spec_node, EXECUTOR_SPEC, problems)
    spec = spec or Fields(fields.node)
    return Executor(
        profile=cast(Literal["auto", "local", "distributed"], fields.text("profile") or "auto"),
        version=fields.text("version"),
        requires=fields.mapping("requires"),
        entry_step=_step_name(spec, "entry_step", problems),
        final_step=_step_name(spec, "final_step", problems),
        no_next_is_error=spec.flag("no_next_is_error"),
        loop_mode=cast(LoopMode | None, spec.text("loop_mode")),
        policy=spec.mapping("policy"),
    )


def _step_name(spec: Fields, key: str, problems: Problems) -> StepName | None:
    node = spec.get(key)
    if node is None:
        return None
    problems.mark(("executor", key), node)
    return StepName(spec.text(key) or "")


def keychain(nodes: list[Node], problems: Problems) -> tuple[KeychainEntry, ...]:
    made: dict[str, KeychainEntry] = {}
    for node in nodes:
        fields = read(node, KEYCHAIN_ENTRY, problems)
        name = None if fields is None else fields.text("name")
        if fields is None or name is None:
            continue
        if name in made:
            message = f"the keychain has two entries named {shown(name)!r}"
            problems.error(fields.values["name"], message, "give each entry its own name")
            continue
        made[name] = _keychain_entry(name, fields, problems)
    return tuple(made.values())


def _keychain_entry(name: str, fields: Fields, problems: Problems) -> KeychainEntry:
    kind = fields.text("kind")
    needs = KEYCHAIN_KINDS[kind] if kind is not None else KEYCHAIN_LEGACY
    if kind is None and "kind" in fields.present:
        needs = ()  # what kind it should be is reported already
    missing = [group for group in needs if not any(key in fields.present for key in group)]
    for group in missing:
        said = "of this kind" if kind is None else f"of kind {kind!r}"
        listed = choices([repr(key) for key in group])
        message = f"a keychain entry {said} needs {listed}"
        problems.error(fields.node, message, f"add `{group[0]}:`")
    if kind in KEYCHAIN_KINDS_OF_OTHERS and not missing:
        message = f"{kind!r} is part of the language, but this engine cannot look it up"
        fix = "fetch the token in a step, or with `kind: oauth2`; tasks that ask for it fail"
        problems.warning(fields.values["kind"], message, fix)
    _check_residency(fields, problems)
    own = {key: to_plain(value) for key, value in fields.values.items() if key not in _ENTRY_KEYS}
    return KeychainEntry(
        name=name,
        kind=kind or "legacy",
        scope=fields.text("scope"),
        auto_renew=fields.flag("auto_renew"),
        fields=own | {key: to_plain(value) for key, value in fields.extra.items()},
    )


def _check_residency(fields: Fields, problems: Problems) -> None:
    """A promise about secrets that nobody keeps must not go unnoticed."""
    residency = fields.text("residency")
    if residency in ("strict", "advisory"):
        message = f"`residency: {residency}` is not kept: a secret is used wherever a worker runs"
        fix = "give workers of that region their own credentials, and remove it"
        problems.warning(fields.values["residency"], message, fix)


def workbook(nodes: list[Node], problems: Problems) -> dict[str, WorkbookTask]:
    made: dict[str, WorkbookTask] = {}
    for node in nodes:
        fields = read(node, WORKBOOK_TASK, problems)
        name = None if fields is None else fields.text("name")
        tool = None if fields is None else fields.get("tool")
        found = None if tool is None or name is None else task(tool, name, problems)
        if fields is None or name is None or found is None:
            continue
        if name in made:
            message = f"the workbook has two tasks named {shown(name)!r}"
            problems.error(fields.values["name"], message, "give each task its own name")
            continue
        expected = tool.get("assert") if isinstance(tool, Mapping) else None
        made[name] = WorkbookTask(
            task=found,
            description=fields.text("desc"),
            expectations=to_plain(expected) if isinstance(expected, Mapping) else {},
        )
    return made
