"""Results as events carry them, and as templates see them.

An event's result is `{"value": …}`, `{"tasks": {name: …}, "order": [names]}` for a pipeline, or
`{"loop": {"results": […], "stats": {…}, "count": n}}` for a loop.
A large one lies in the payload store in the same form; the event keeps the block that `extract`
makes of it, and what the block lacks is a `Reference` until somebody fetches it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from noetl.domain.events.values import Failure, Result, ResultReference
from noetl.templates.extract import cut_as_plain, cut_from_plain, extract
from noetl.templates.layered import PipelineResult, StoredResult, plain_result
from noetl.templates.lookup import look_up
from noetl.templates.reference import UNKNOWN, Cut, Reference

INLINE_BYTES_MAX = 102_400
"""Up to here a result is in its event; above it lies in the payload store."""

VALUE = "value"
TASKS = "tasks"
ORDER = "order"
LOOP = "loop"
NAMES = "names"  # further names for fields of the result, beside its content
STORE = "store"  # the playbook's own word for where the result is to lie

KV_BYTES_MAX = 1_000_000
"""What playbooks call a result of the key-value store; a larger one is on disk."""

Fetched = Mapping[str, Any]
"""Contents of payloads by their uri, decoded."""


SAID_APART = ("http", "pg", "py")
"""Parts of a failure's detail that `output` has under names of their own."""


def error_names(failure: Failure) -> dict[str, Any]:
    """`output.error`; what is not known is absent, so that `default` works."""
    detail = {name: value for name, value in failure.detail.items() if name not in SAID_APART}
    told = {**detail, "kind": failure.kind, "message": failure.message}
    if failure.code is not None:
        told["code"] = failure.code
    return {**told, "retryable": failure.retryable}


def content_of(value: Any) -> dict[str, Any]:
    """The plain form of a result; canonical JSON sorts keys, so the order of tasks is kept."""
    if isinstance(value, PipelineResult):
        tasks = {name: plain_result(task) for name, task in value.tasks.items()}
        return {TASKS: tasks, ORDER: list(value.tasks)}
    return {VALUE: plain_result(value)}


def inline_result(value: Any, status: str = "ok") -> Result:
    return Result(status=status, context=content_of(value))


def referred_result(
    content: dict[str, Any], reference: ResultReference, status: str = "ok"
) -> Result:
    """The result whose content was stored under `reference`.

    The order of tasks stays whole: the last one's result is the result.
    """
    order = {ORDER: content[ORDER]} if ORDER in content else {}
    short = extract({key: part for key, part in content.items() if key not in order})
    context: dict[str, Any] = {"extracted": {**short.block, **order}}
    if short.cut is not None:
        context["cut"] = cut_as_plain(short.cut)
    return Result(status=status, reference=reference, context=context)


def stored_result(result: Result, value: Any) -> StoredResult:
    """A value at hand whose content was stored."""
    assert result.reference is not None
    return StoredResult(value, _facts(result.reference, result.context), recorded=result)


class RecordedResults(Mapping[str, Any]):
    """Results of steps by name, each opened when it is asked for."""

    def __init__(
        self,
        results: Mapping[Any, Result],
        fetched: Fetched | None = None,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self._results = results
        self._fetched = fetched
        self._aliases = aliases or {}
        self._opened: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        name = self._aliases.get(name, name)
        if name not in self._opened:
            self._opened[name] = value_of(self._results[name], self._fetched)
        return self._opened[name]

    def __contains__(self, name: object) -> bool:
        return name in self._results or self._aliases.get(str(name)) in self._results

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)


def value_of(result: Result, fetched: Fetched | None = None) -> Any:
    """What templates get: plain data or a PipelineResult; of a large one a StoredResult.

    Inside of that are references, until somebody fetched it.
    """
    reference = result.reference
    names = result.context.get(NAMES, {})
    if reference is None:
        value = _opened(result.context)
        return StoredResult(value, _Named({}, value, names)) if names else value
    facts = _facts(reference, result.context)
    if fetched is not None and reference.uri in fetched:
        value = _opened(fetched[reference.uri])
    else:
        value = _opened_block(reference, result.context)
    return StoredResult(value, _Named(facts, value, names) if names else facts)


class _Named(Mapping[str, Any]):
    """What is known of a result, and fields of it by further names, each looked up when asked."""

    def __init__(self, facts: Mapping[str, Any], value: Any, names: Mapping[str, Any]) -> None:
        self._facts = facts
        self._value = value
        self._names = names

    def __getitem__(self, name: str) -> Any:
        if name in self._facts:
            return self._facts[name]
        path = self._names[name]
        found = self._value.tasks if path[0] == TASKS else self._value
        for part in path[1:]:
            found = look_up(found, part)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._facts or name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter({**self._facts, **self._names})

    def __len__(self) -> int:
        return len({**self._facts, **self._names})


def _facts(reference: ResultReference, context: Mapping[str, Any]) -> dict[str, Any]:
    """Playbooks tell by `_store` how large a result was, as the engines they were written for."""
    block = context.get("extracted", {})
    parts = (block[name] for name in (VALUE, TASKS, LOOP) if name in block)
    is_small = (reference.byte_length or 0) < KV_BYTES_MAX
    store = ("kv" if is_small else "disk") if reference.type == "object_store" else reference.type
    store = context.get(STORE, store)
    return {"_ref": reference.uri, "_store": store, "_preview": next(parts, None)}


def _opened(content: Mapping[str, Any]) -> Any:
    if TASKS in content:
        tasks = content[TASKS]
        return PipelineResult({name: tasks[name] for name in content[ORDER]})
    if LOOP in content:
        return _loop_value(content[LOOP], content[LOOP].get("results"))
    return content.get(VALUE)


def _loop_value(loop: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """`data` is another name for the rows' results, which playbooks read as a list."""
    return {**loop, "results": rows, "data": rows}


def _opened_block(reference: ResultReference, context: Mapping[str, Any]) -> Any:
    block = context.get("extracted", {})
    cut = cut_from_plain(context.get("cut", {}), block)
    if ORDER in block:
        tasks = block.get(TASKS, {})
        inner_tasks = cut.within.get(TASKS, Cut())
        parts = {
            name: _part(reference.uri, tasks.get(name), inner_tasks.within.get(name), (TASKS, name))
            if name in tasks
            else Reference(reference.uri, None, UNKNOWN, path=(TASKS, name))
            for name in block[ORDER]
        }
        return PipelineResult(parts)
    if LOOP in block:
        rows = cut.within.get(LOOP, Cut()).within.get("results", UNKNOWN)
        known = block[LOOP].get("results", [])
        path = (LOOP, "results")
        return _loop_value(block[LOOP], Reference(reference.uri, known, rows, path=path))
    if VALUE not in block:
        return Reference(reference.uri, None, UNKNOWN, path=(VALUE,))
    inner = cut.within.get(VALUE)
    if inner is None:
        return block[VALUE]
    return Reference(reference.uri, block[VALUE], inner, path=(VALUE,))


def _part(uri: str, block: Any, cut: Cut | None, path: tuple[str, ...]) -> Any:
    return block if cut is None else Reference(uri, block, cut, path=path)
