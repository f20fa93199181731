"""Fields of a result that its author wants at hand: whole in the event, whatever the rest is."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from noetl.domain.events.values import Result
from noetl.domain.playbook.values import Selection
from noetl.templates.extract import Extract, cut_as_plain, cut_from_plain, extract
from noetl.templates.recorded import NAMES, ORDER, TASKS, VALUE
from noetl.templates.reference import Cut

SELECTED_BYTES_MAX = 16_384
"""All selected fields together; what does not fit is shortened as the rest is, and fetched."""

Path = tuple[str, ...]


class Chosen(NamedTuple):
    """Where the fields lie in a result's content, and by which further names they go."""

    paths: tuple[Path, ...] = ()
    names: Mapping[str, Path] = {}

    def and_paths(self, paths: Iterable[Path]) -> "Chosen":
        return Chosen((*self.paths, *paths), self.names)


def chosen_of(content: Mapping[str, Any], selections: Iterable[Selection]) -> Chosen:
    """What is not there is left out. A field of the result's own keeps its name."""
    names: dict[str, Path] = {}
    paths = []
    for selection in selections:
        path = _located(content, selection.path)
        if path is None:
            continue
        paths.append(path)
        if _located(content, selection.name) is None:
            names[selection.name] = path
    return Chosen(tuple(paths), names)


def chosen_of_task(
    content: Mapping[str, Any], task: str, selections: Iterable[Selection]
) -> list[Path]:
    """Fields that a task of a pipeline selected from its own result."""
    value = content.get(TASKS, {}).get(task)
    found = (_within(value, each.path.split(".")) for each in selections)
    return [(TASKS, task, *path) for path in found if path is not None]


def with_chosen(
    result: Result, content: Mapping[str, Any], chosen: Chosen, preview_bytes_max: int | None
) -> Result:
    """The result with the chosen fields in its block, and a block of another size if asked."""
    context = dict(result.context)
    if result.reference is not None and (chosen.paths or preview_bytes_max is not None):
        short = _block(context, content, preview_bytes_max)
        for path in _that_fit(content, chosen.paths):
            short = _grafted(short, content, path)
        order = {ORDER: content[ORDER]} if ORDER in content else {}
        context = {**context, "extracted": {**short.block, **order}}
        context.pop("cut", None)
        if short.cut is not None:
            context["cut"] = cut_as_plain(short.cut)
    if chosen.names:
        context[NAMES] = {name: list(path) for name, path in chosen.names.items()}
    return msgspec.structs.replace(result, context=context)


def _block(
    context: Mapping[str, Any], content: Mapping[str, Any], bytes_max: int | None
) -> Extract:
    if bytes_max is not None:
        return extract({key: part for key, part in content.items() if key != ORDER}, bytes_max)
    block = {key: part for key, part in context["extracted"].items() if key != ORDER}
    cut = context.get("cut")
    return Extract(block, None if cut is None else cut_from_plain(cut, block))


def _that_fit(content: Mapping[str, Any], paths: Iterable[Path]) -> list[Path]:
    left = SELECTED_BYTES_MAX
    fitting = []
    for path in dict.fromkeys(paths):
        value: Any = content
        for part in path:
            value = value[part]
        size = _size(value)
        if size is not None and size <= left:
            left -= size
            fitting.append(path)
    return fitting


def _size(value: Any) -> int | None:
    """Every element takes a byte at least: a large list is not written out to be measured."""
    if isinstance(value, str | list | dict) and len(value) > SELECTED_BYTES_MAX:
        return None
    try:
        return len(json.dumps(value, ensure_ascii=False).encode())
    except TypeError:
        return None  # rows of a table that is stored already: they stay where they are


def _grafted(short: Extract, whole: Any, path: Path) -> Extract:
    """The block with what lies at the path in full, and the cut without it."""
    if short.cut is None:
        return short
    if not path:
        return Extract(whole, None)
    head, rest = path[0], path[1:]
    within = dict(short.cut.within)
    if head in short.block:
        here = Extract(short.block[head], within.pop(head, None))
    else:
        here = Extract({}, Cut(len(whole[head]) if rest else None))
    part = _grafted(here, whole[head], rest)
    block = {**short.block, head: part.block}
    if part.cut is not None:
        within[head] = part.cut
    length = None if short.cut.length == len(block) else short.cut.length
    cut = None if length is None and not within else Cut(length, within)
    return Extract(block, cut)


def _located(content: Mapping[str, Any], written: str) -> Path | None:
    parts = written.split(".")
    if TASKS not in content:
        found = _within(content.get(VALUE), parts)
        return None if found is None else (VALUE, *found)
    tasks = content[TASKS]
    if parts[0] in tasks:
        found = _within(tasks[parts[0]], parts[1:])
        return None if found is None else (TASKS, parts[0], *found)
    for name in reversed(content[ORDER]):
        found = _within(tasks[name], parts)
        if found is not None:
            return (TASKS, name, *found)
    return None


def _within(value: Any, parts: list[str]) -> Path | None:
    """As templates read it: `data` may mean the result itself, and names go on in a body."""
    if _has(value, parts):
        return tuple(parts)
    if not isinstance(value, dict) or not parts:
        return None
    if parts[0] == "data" and "data" not in value:
        return tuple(parts[1:]) if _has(value, parts[1:]) else None
    if "status_code" in value and _has(value.get("data"), parts):
        return ("data", *parts)
    return None


def _has(value: Any, parts: list[str]) -> bool:
    for part in parts:
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True
