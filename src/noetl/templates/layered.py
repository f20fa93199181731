"""Results as templates see them: the result itself, with further names behind it.

A `Layered` value is its whole in every respect but one: names that the whole lacks are looked up
in further layers. So `{{ output }}` is the result, and `{{ output.error.kind }}` still works.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from noetl.domain.events.values import Result
from noetl.templates.errors import NeedsPayload
from noetl.templates.lookup import MISSING, Lookup, look_up
from noetl.templates.reference import Reference

ERROR: Final = "error"


class Layered(Lookup):
    """`whole` is what it is worth; `layers` are asked for names in order."""

    __slots__ = ("layers", "whole")

    def __init__(self, whole: Any, *layers: Any) -> None:
        self.whole = whole
        self.layers = layers

    def look_up(self, key: Any) -> Any:
        if not isinstance(key, str):
            return look_up(self.whole, key)
        for layer in self.layers:
            found = look_up(layer, key)
            if found is not MISSING:
                return found
        return MISSING

    def __bool__(self) -> bool:
        return bool(self.whole)

    def __eq__(self, other: object) -> bool:
        return bool(self.whole == (other.whole if isinstance(other, Layered) else other))

    __hash__ = None  # type: ignore[assignment]  # like its whole, which is mostly a dict

    def __repr__(self) -> str:
        return f"Layered({self.whole!r})"


class ResultsByName(Mapping[str, Any]):
    """Results of steps or tasks, each dressed as `step_result` when it is asked for."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = results

    def __getitem__(self, name: str) -> Any:
        return step_result(self._results[name])

    def __contains__(self, name: object) -> bool:
        return name in self._results

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)


class _ByName(Layered):
    """Results that are put together only when somebody asks for all of them."""

    __slots__ = ("_results",)

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = results
        self.layers = (ResultsByName(results),)

    @property
    def whole(self) -> Any:
        return {name: plain_result(result) for name, result in self._results.items()}


def by_name(results: Mapping[str, Any]) -> Layered:
    """`{{ steps }}`: worth the plain results, dressed one by one when named."""
    return _ByName(results)


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """A pipeline's result is its last task's; the others stay within reach."""

    tasks: Mapping[str, Any]  # in the order they ended


@dataclass(frozen=True, slots=True)
class StoredResult:
    """A result that was too large for its event: worth what it is, and it says where it lies."""

    value: Any  # plain, a PipelineResult or a Reference
    facts: Mapping[str, Any]  # `_ref`, `_store`, `_preview`
    recorded: Result | None = None  # as it is recorded: what is stored is not stored again


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a piece of work ended: the envelope around its result."""

    result: Any = None
    status: str = "ok"  # ok | error
    error: Mapping[str, Any] | None = None
    http: Mapping[str, Any] | None = None
    pg: Mapping[str, Any] | None = None
    py: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None
    ref: Any = None
    context: Mapping[str, Any] | None = None


def plain_result(result: Any) -> Any:
    """What a result is worth when it is passed on or recorded."""
    if isinstance(result, StoredResult):
        return plain_result(result.value)
    if isinstance(result, PipelineResult):
        return [None, *result.tasks.values()][-1]
    return result


def step_result(result: Any) -> Any:
    """What `{{ step }}` gives: the result, `.data` as another name for it, tasks by name."""
    worth = plain_result(result)
    if not has_names(worth) and not isinstance(result, PipelineResult | StoredResult):
        return worth
    return Layered(worth, *_names_of_result(result), _Body(worth))


def output_of_result(outcome: Outcome) -> Layered:
    """`output` in a task's or step's `set` and in arcs: the result first, then the envelope."""
    worth = plain_result(outcome.result)
    further = (_Envelope(outcome), _Data(worth, "response"), _Body(worth))
    return Layered(worth, *_names_of_result(outcome.result), *further)


def output_of_envelope(outcome: Outcome) -> Layered:
    """`output` in a policy rule, which judges how the task ended: the envelope first."""
    worth = plain_result(outcome.result)
    return Layered(worth, _Whole(worth), _Envelope(outcome), worth, _Body(worth))


def names_error(outcome: Outcome) -> bool:
    """Whether `output.error` of a rule may stand for something: how it ended, or a field of it."""
    if outcome.error is not None:
        return True
    worth = plain_result(outcome.result)
    try:
        return not (look_up(worth, ERROR) is _Body(worth).look_up(ERROR) is MISSING)
    except NeedsPayload:
        return True


def has_names(value: Any) -> bool:
    if isinstance(value, Reference):
        return value.kind in ("object", "unknown")
    return isinstance(value, (dict, Mapping))


def _names_of_result(result: Any) -> tuple[Any, ...]:
    if isinstance(result, StoredResult):
        # First: asking where a result lies must not open it.
        return (result.facts, *_names_of_result(result.value))
    worth = plain_result(result)
    tasks = (_Tasks(result.tasks),) if isinstance(result, PipelineResult) else ()
    return (_Data(worth), worth, *tasks)


# The layers look into a result only when asked: a reference must not be opened for passing it on.


class _Data(Lookup):
    """`.data`: the body of a response, the result's own `data`, or the result again."""

    __slots__ = ("_name", "_result")

    def __init__(self, result: Any, name: str = "data") -> None:
        self._result = result
        self._name = name

    def look_up(self, key: Any) -> Any:
        if key != self._name:
            return MISSING
        own = look_up(self._result, "data")
        if own is MISSING:
            return self._result
        if has_names(own) and _is_response(self._result):
            return Layered(own, own, self._result)
        return own


class _Whole(Lookup):
    """`data` and `response`: the whole result, and below them the names inside of its body."""

    __slots__ = ("_result",)

    def __init__(self, result: Any) -> None:
        self._result = result

    def look_up(self, key: Any) -> Any:
        if key not in ("data", "response"):
            return MISSING
        result = self._result
        return Layered(result, result, _Body(result)) if has_names(result) else result


class _Body(Lookup):
    """Names inside the body of a response."""

    __slots__ = ("_result",)

    def __init__(self, result: Any) -> None:
        self._result = result

    def look_up(self, key: Any) -> Any:
        if not _is_response(self._result):
            return MISSING
        return look_up(look_up(self._result, "data"), key)


class _Tasks(Lookup):
    """A pipeline's tasks: by name, all together as `results`, then their fields, latest first."""

    __slots__ = ("_tasks",)

    def __init__(self, tasks: Mapping[str, Any]) -> None:
        self._tasks = tasks

    def look_up(self, key: Any) -> Any:
        if key in self._tasks:
            return step_result(self._tasks[key])
        if key == "results":
            return by_name(self._tasks)
        latest_first = [*self._tasks.values()][::-1]
        found = (look_up(plain_result(result), key) for result in latest_first)
        return next((value for value in found if value is not MISSING), MISSING)


class _Envelope(Lookup):
    """The fields around a result. An absent one is missing, not None, so that `default` works."""

    __slots__ = ("_outcome",)

    _FIELDS = frozenset({"status", "error", "http", "pg", "py", "meta", "ref", "context"})

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def look_up(self, key: Any) -> Any:
        if key not in self._FIELDS:
            return MISSING
        value = getattr(self._outcome, key)
        if value is None:
            return MISSING
        http = self._outcome.http
        if key == "error" and http is not None:
            code = http.get("status")
            return Layered(value, value, {"status": code, "status_code": code, "http_status": code})
        return value


def _is_response(result: Any) -> bool:
    """An HTTP tool's result: the only one whose names continue in its body."""
    return has_names(result) and look_up(result, "status_code") is not MISSING
