"""What `{{ function(…) }}` and `{{ value.method(…) }}` offer.

A call is looked up here by its name when the template is compiled. Functions and methods are
never values, so there is nothing that an expression could pass around or climb up from.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from jinja2 import Undefined
from jinja2.runtime import LoopContext
from jinja2.utils import Namespace

from noetl.kernel.instant import from_datetime
from noetl.templates import filters, words
from noetl.templates.errors import TemplateFailed, TemplateTooLarge
from noetl.templates.limits import RANGE_ITEMS_MAX, check_at_most
from noetl.templates.reference import Reference
from noetl.templates.rendering import Rendering

Function = Callable[..., Any]

_TIME_FORMAT_CHARS_MAX = 200
_TIME_FORMAT_WIDTH = re.compile(r"%[^A-Za-z%]*\d")


def _now(rendering: Rendering) -> datetime:
    return rendering.moment()


def _timestamp(rendering: Rendering) -> float:
    return rendering.moment().timestamp()


def _random(rendering: Rendering) -> float:
    chance, draw = rendering.draw()
    return chance.fraction(draw)


def _uuid(rendering: Rendering) -> str:
    chance, draw = rendering.draw()
    return chance.uuid(draw)


def _range(_rendering: Rendering, *bounds: int) -> range:
    made = range(*bounds)
    try:
        check_at_most(len(made), RANGE_ITEMS_MAX, "the length of the range")
    except OverflowError:  # longer than a machine word
        raise TemplateTooLarge(f"the range has more than {RANGE_ITEMS_MAX:,} items") from None
    return made


def _dict(_rendering: Rendering, *pairs: Any, **items: Any) -> dict[Any, Any]:
    return dict(*pairs, **items)


def _namespace(_rendering: Rendering, **items: Any) -> Namespace:
    return Namespace(**items)


FUNCTIONS: dict[str, Function] = {
    "dict": _dict,
    "namespace": _namespace,
    "now": _now,
    "random": _random,
    "range": _range,
    "timestamp": _timestamp,
    "utcnow": _now,
    "uuid": _uuid,
    "uuid4": _uuid,
}


def _on_text(name: str) -> Function:
    def run(rendering: Rendering, value: Any, *arguments: Any) -> Any:
        if not isinstance(rendering.operand(value), str):
            raise _no_method(value, name)
        return words.call_text_method(name, rendering.operand(value), arguments)

    return run


def _replace(rendering: Rendering, value: Any, old: str, new: str, count: int = -1) -> str:
    if not isinstance(value, str):
        raise _no_method(value, "replace")
    return filters.replace(rendering, value, old, new, count)


def _split(rendering: Rendering, value: Any, separator: Any = None, count: int = -1) -> list[str]:
    if not isinstance(value, str):
        raise _no_method(value, "split")
    return words.split(rendering, value, separator, count)


def _join(rendering: Rendering, value: Any, parts: Any) -> str:
    if not isinstance(value, str):
        raise _no_method(value, "join")
    return filters.join(rendering, parts, value)


def _count(rendering: Rendering, value: Any, item: Any) -> int:
    rendering.weigh(value)
    if not isinstance(value, (str, list, tuple)):
        raise _no_method(value, "count")
    return value.count(item)


def _index(rendering: Rendering, value: Any, item: Any) -> int:
    rendering.weigh(value)
    if not isinstance(value, (str, list, tuple)):
        raise _no_method(value, "index")
    return value.index(item)


def _isoformat(_rendering: Rendering, value: Any) -> str:
    if not isinstance(value, datetime):
        raise _no_method(value, "isoformat")
    return from_datetime(value)


def _strftime(_rendering: Rendering, value: Any, layout: str) -> str:
    if not isinstance(value, datetime):
        raise _no_method(value, "strftime")
    check_at_most(len(layout), _TIME_FORMAT_CHARS_MAX, "the length of the time format")
    if _TIME_FORMAT_WIDTH.search(layout):
        raise TemplateFailed("the time format has a width; pad with a filter instead")
    return value.strftime(layout)


def _timestamp_of(_rendering: Rendering, value: Any) -> float:
    if not isinstance(value, datetime):
        raise _no_method(value, "timestamp")
    return value.timestamp()


def _cycle(_rendering: Rendering, value: Any, *choices: Any) -> Any:
    if not isinstance(value, LoopContext):
        raise _no_method(value, "cycle")
    return value.cycle(*choices)


METHODS: dict[str, Function] = {
    **{name: _on_text(name) for name in words.PLAIN_METHODS | words.WIDTH_METHODS},
    "count": _count,
    "cycle": _cycle,
    "get": filters.get,
    "index": _index,
    "isoformat": _isoformat,
    "items": filters.pairs,
    "join": _join,
    "keys": filters.keys,
    "replace": _replace,
    "split": _split,
    "strftime": _strftime,
    "timestamp": _timestamp_of,
    "values": filters.values,
}
UNOPENED_METHODS = frozenset({"get", "items", "keys", "values"})
"""Methods that a reference can answer from its block."""


def _no_method(value: Any, name: str) -> TemplateFailed:
    if isinstance(value, Undefined):
        return TemplateFailed(f"{name}() is asked of something missing; give a default first")
    kind = "reference" if isinstance(value, Reference) else type(value).__name__
    return TemplateFailed(f"a {kind} has no method {name}")
