"""Everything a template can call, each with what it costs and whether it opens references.

Jinja knows calls, methods, comparisons and slices as parts of its grammar. Here they are entries
in one table under names that no author can write, e.g. `method:upper`; `grammar` puts them there.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from jinja2 import Undefined, pass_context
from jinja2.filters import FILTERS as JINJA_FILTERS

from noetl.templates import filters, words
from noetl.templates.checks import CHECKS
from noetl.templates.context import RenderContext
from noetl.templates.functions import FUNCTIONS, METHODS, UNOPENED_METHODS
from noetl.templates.limits import CHARS_PER_STEP
from noetl.templates.operators import compare
from noetl.templates.reference import Reference
from noetl.templates.rendering import Rendering
from noetl.templates.table_rows import TableRows

COMPARISONS = ("eq", "ne", "lt", "lteq", "gt", "gteq", "in", "notin")

Callback = Callable[..., Any]


class Cost(Enum):
    ONE = "one step"
    LENGTH = "a step for each element"
    PARTS = "a step for each part, however deep"


class Entry(NamedTuple):
    run: Callback
    cost: Cost = Cost.LENGTH
    opens: bool = True  # False: a reference or a secret is passed on unopened


def _joined(rendering: Rendering, parts: list[Any]) -> str:
    return filters.join(rendering, parts)


def _sliced(rendering: Rendering, value: Any, *bounds: Any) -> Any:
    part = slice(*bounds)
    if isinstance(value, Reference):
        return value.sliced(part)
    if isinstance(value, (str, list, tuple, range, TableRows)):
        return value[part]
    return [] if isinstance(value, Undefined) else rendering.listed(value)[part]


def _absolute(_rendering: Rendering, value: Any) -> Any:
    return abs(value)


def _same(_rendering: Rendering, value: Any) -> Any:
    return value


_ONE_UNOPENED = partial(Entry, cost=Cost.ONE, opens=False)

FILTERS: dict[str, Entry] = {
    "abs": Entry(_absolute, Cost.ONE),
    "b64decode": Entry(filters.base64_decoded),
    "b64encode": Entry(filters.base64_encoded),
    "batch": Entry(filters.batches),
    "center": Entry(filters.centered),
    "count": _ONE_UNOPENED(filters.length),
    "d": _ONE_UNOPENED(filters.default),
    "default": _ONE_UNOPENED(filters.default),
    "first": _ONE_UNOPENED(filters.first),
    "float": Entry(filters.real, Cost.ONE),
    "format": Entry(filters.percent_format),
    "from_json": Entry(filters.from_json),
    "fromjson": Entry(filters.from_json),
    "get": _ONE_UNOPENED(filters.get),
    "indent": Entry(filters.indented),
    "int": Entry(filters.integer, Cost.ONE),
    "items": _ONE_UNOPENED(filters.pairs),
    "join": _ONE_UNOPENED(filters.join),
    "keys": _ONE_UNOPENED(filters.keys),
    "last": _ONE_UNOPENED(filters.last),
    "len": _ONE_UNOPENED(filters.length),
    "length": _ONE_UNOPENED(filters.length),
    "list": _ONE_UNOPENED(filters.listed),
    "random": _ONE_UNOPENED(filters.choice),
    "replace": Entry(filters.replace),
    "round": Entry(filters.rounded, Cost.ONE),
    "safe": _ONE_UNOPENED(_same),
    "split": Entry(filters.split),
    "string": Entry(words.string),
    "sum": Entry(filters.total),
    "to_json": _ONE_UNOPENED(filters.to_json),
    "tojson": _ONE_UNOPENED(filters.to_json),
    "trim": Entry(words.trim),
    "truncate": Entry(words.truncate),
    "urlencode": Entry(words.url_encoded),
    "values": _ONE_UNOPENED(filters.values),
    "wordcount": Entry(words.word_count),
    **{name: Entry(words.text_filter(name)) for name in ("capitalize", "lower", "title", "upper")},
}

_TAKING_CONTEXT = ("map", "reject", "rejectattr", "select", "selectattr")
_TAKING_ENVIRONMENT = ("groupby", "max", "min", "sort", "unique")
_TAKING_VALUES = ("dictsort", "reverse")
"""Jinja's own filters, where they are fine as they are, by what they want as first argument."""

_COMPARING = frozenset({*_TAKING_ENVIRONMENT, "dictsort"})

GRAMMAR: dict[str, Entry] = {
    "join": _ONE_UNOPENED(_joined),
    "slice": _ONE_UNOPENED(_sliced),
}


def filter_table() -> dict[str, Callback]:
    """For the environment: filters by their names, all else under a prefix."""
    table: dict[str, Callback] = {name: _guarded(entry) for name, entry in FILTERS.items()}
    table |= {name: _guarded_jinja(name) for name in _TAKING_CONTEXT}
    table |= {name: _guarded_jinja(name) for name in _TAKING_ENVIRONMENT}
    table |= {name: _guarded_jinja(name) for name in _TAKING_VALUES}
    table |= {f"grammar:{name}": _guarded(entry) for name, entry in GRAMMAR.items()}
    table |= {f"compare:{name}": _comparison(name) for name in COMPARISONS}
    table |= {f"call:{name}": _function(run) for name, run in FUNCTIONS.items()}
    for name, run in METHODS.items():
        entry = Entry(run, opens=name not in UNOPENED_METHODS)
        table[f"method:{name}"] = _guarded(entry)
    return {**table, "grammar:counted": _counted, "grammar:name": _name}


def check_table() -> dict[str, Callback]:
    return {name: _check(run) for name, run in CHECKS.items()}


def _guarded(entry: Entry) -> Callback:
    run, cost, opens = entry

    @pass_context
    def call(context: RenderContext, value: Any, /, *arguments: Any, **named: Any) -> Any:
        rendering = context.rendering
        admitted = rendering.operand if opens else rendering.passed
        value = admitted(value)
        _charge(rendering, cost, value)
        if named:
            named = {name: admitted(argument) for name, argument in named.items()}
        return rendering.made(run(rendering, value, *map(admitted, arguments), **named))

    return call


def _guarded_jinja(name: str) -> Callback:
    run = JINJA_FILTERS[name]
    cost = Cost.PARTS if name in _COMPARING else Cost.ONE

    @pass_context
    def call(context: RenderContext, value: Any, /, *arguments: Any, **named: Any) -> Any:
        rendering = context.rendering
        # A reference whose elements are all known is as good as the list itself.
        value = rendering.counted(value)
        _charge(rendering, cost, value)
        plain = map(rendering.operand, arguments)
        named = {key: rendering.operand(argument) for key, argument in named.items()}
        if name in _TAKING_CONTEXT:
            return run(context, value, *plain, **named)
        if name in _TAKING_ENVIRONMENT:
            return rendering.made(run(context.environment, value, *plain, **named))
        return rendering.made(run(value, *plain, **named))

    return call


def _comparison(name: str) -> Callback:
    @pass_context
    def call(context: RenderContext, left: Any, right: Any, /) -> bool:
        return compare(context.rendering, name, left, right)

    return call


def _function(run: Callback) -> Callback:
    @pass_context
    def call(context: RenderContext, _nothing: None, /, *arguments: Any, **named: Any) -> Any:
        rendering = context.rendering
        rendering.budget.spend(1)
        plain = map(rendering.passed, arguments)
        return rendering.made(run(rendering, *plain, **named))

    return call


def _check(run: Callback) -> Callback:
    @pass_context
    def call(context: RenderContext, value: Any, /, *arguments: Any) -> bool:
        rendering = context.rendering
        return bool(run(rendering, rendering.passed(value), *map(rendering.passed, arguments)))

    return call


@pass_context
def _name(context: RenderContext, name: str, /) -> Any:
    return context.resolve(name)


@pass_context
def _counted(context: RenderContext, value: Any, /) -> Any:
    return context.rendering.counted(value)


def _charge(rendering: Rendering, cost: Cost, value: Any) -> None:
    if cost is Cost.PARTS:
        rendering.weigh(value)
    elif cost is Cost.LENGTH and isinstance(value, str):
        rendering.budget.spend(1 + len(value) // CHARS_PER_STEP)
    elif cost is Cost.LENGTH and isinstance(value, (list, tuple, Mapping, range)):
        rendering.budget.spend(1 + len(value))
    else:
        rendering.budget.spend(1)
