"""What `{{ value | filter }}` offers."""

import base64
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import ChainableUndefined, Undefined

from noetl.templates import words
from noetl.templates.errors import TemplateFailed
from noetl.templates.limits import DIGITS_MAX, STEPS_MAX, WIDTH_MAX, check_at_most
from noetl.templates.lookup import MISSING, look_up
from noetl.templates.operators import formatted
from noetl.templates.reference import Reference
from noetl.templates.rendering import Rendering
from noetl.templates.table_rows import TableRows

INDENT_MAX = 16
_EMPTY = "the list is empty"
_ROUNDINGS: dict[str, Callable[[float], int]] = {"ceil": math.ceil, "floor": math.floor}


def default(_rendering: Rendering, value: Any, other: Any = "", boolean: bool = False) -> Any:
    return other if isinstance(value, Undefined) or (boolean and not value) else value


def length(_rendering: Rendering, value: Any) -> int:
    return len(value)


def first(_rendering: Rendering, value: Any) -> Any:
    found = look_up(value, 0) if _has_positions(value) else next(iter(value), MISSING)
    return ChainableUndefined(_EMPTY) if found is MISSING else found


def last(rendering: Rendering, value: Any) -> Any:
    found = look_up(value if _has_positions(value) else rendering.listed(value), -1)
    return ChainableUndefined(_EMPTY) if found is MISSING else found


def _has_positions(value: Any) -> bool:
    if isinstance(value, Reference):
        return value.known_kind() != "object"
    return isinstance(value, (list, tuple, str, TableRows))


def integer(_rendering: Rendering, value: Any, other: Any = 0, base: int = 10) -> Any:
    if isinstance(value, Undefined):
        return other
    try:
        return int(value, base) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        return _whole_part(value, other)
    except OverflowError:  # infinity
        return other


def _whole_part(value: Any, other: Any) -> Any:
    """Text like `3.7` is 3, as authors expect who read numbers from text."""
    try:
        return int(float(value))
    except (TypeError, ValueError, OverflowError):
        return other


def real(_rendering: Rendering, value: Any, other: Any = 0.0) -> Any:
    try:
        return other if isinstance(value, Undefined) else float(value)
    except (TypeError, ValueError, OverflowError):
        return other


def to_json(rendering: Rendering, value: Any, indent: int | None = None) -> str:
    if indent is not None:
        check_at_most(indent, INDENT_MAX, "the indent")
    return rendering.json(value, indent)


def from_json(rendering: Rendering, value: Any) -> Any:
    if isinstance(value, str):
        rendering.budget.spend(sum(map(value.count, ",[{")))  # about as many values as it holds
    try:
        return json.loads(value, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise TemplateFailed(f"the text is not JSON ({place} of it); check what it holds") from None


def _refuse_constant(name: str) -> None:
    raise TemplateFailed(f"{name} is not JSON; use null")


def base64_encoded(rendering: Rendering, value: Any) -> str:
    return base64.b64encode(rendering.text(value).encode()).decode()


def base64_decoded(rendering: Rendering, value: Any) -> str:
    try:
        return base64.b64decode(rendering.text(value), validate=True).decode()
    except ValueError:
        raise TemplateFailed("the text is not base64 of UTF-8 text") from None


def replace(rendering: Rendering, value: Any, old: Any, new: Any, count: int = -1) -> str:
    text, old, new = rendering.text(value), rendering.text(old), rendering.text(new)
    found = text.count(old)
    times = found if count < 0 else min(found, count)
    rendering.budget.make(max(len(text) + times * (len(new) - len(old)), 0))
    return text.replace(old, new, count)


def join(rendering: Rendering, value: Any, separator: Any = "", attribute: Any = None) -> str:
    parts = []
    between = rendering.text(separator)
    for item in rendering.counted(value):
        part = rendering.text(item if attribute is None else _part(item, attribute))
        rendering.budget.make(len(part) + len(between))
        parts.append(part)
    return between.join(parts)


def _part(item: Any, attribute: Any) -> Any:
    for name in str(attribute).split("."):
        item = look_up(item, int(name) if name.isdecimal() else name)
    return None if item is MISSING else item


def split(rendering: Rendering, value: Any, separator: Any = None, count: int = -1) -> list[str]:
    return words.split(rendering, rendering.text(value), separator, count)


def total(rendering: Rendering, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    """Numbers only: adding up lists copies them again and again."""
    result = start
    for item in rendering.counted(value):
        number = item if attribute is None else _part(item, attribute)
        if not isinstance(number, (int, float)):
            raise TemplateFailed(
                f"sum adds numbers, not {type(number).__name__}; convert them first"
            )
        result += number
    return result


def rounded(_rendering: Rendering, value: Any, precision: int = 0, method: str = "common") -> Any:
    check_at_most(abs(precision), DIGITS_MAX, "the precision")
    if method == "common":
        return round(value, precision)
    if method not in _ROUNDINGS:
        raise TemplateFailed(f"{method!r} is not a way to round; use common, ceil or floor")
    scale = float(10**precision)
    return _ROUNDINGS[method](value * scale) / scale


def indented(rendering: Rendering, value: Any, width: Any = 4, first: bool = False) -> str:
    prefix = width if isinstance(width, str) else " " * _checked_width(width)
    lines = rendering.text(value).splitlines(keepends=True)
    rendering.budget.make(len(prefix) * len(lines))
    kept = "".join(f"{prefix}{line}" if line.strip() else line for line in lines[1:])
    head = lines[0] if lines else ""
    return f"{prefix if first and head else ''}{head}{kept}"


def _checked_width(width: int) -> int:
    check_at_most(width, WIDTH_MAX, "the width")
    return width


def centered(rendering: Rendering, value: Any, width: int = 80) -> str:
    return rendering.text(value).center(_checked_width(width))


def batches(rendering: Rendering, value: Any, size: int, fill: Any = None) -> list[list[Any]]:
    if size < 1:
        raise TemplateFailed(f"batches of {size} are not possible; use at least 1")
    items = rendering.listed(rendering.counted(value))
    made = [items[at : at + size] for at in range(0, len(items), size)]
    if made and fill is not None:
        lacking = size - len(made[-1])
        check_at_most(lacking, STEPS_MAX, "what fills the last batch")
        made[-1] += [fill] * lacking
    return made


def keys(_rendering: Rendering, value: Any) -> list[Any]:
    return [key for key, _ in pairs(_rendering, value)]


def values(_rendering: Rendering, value: Any) -> list[Any]:
    return [item for _, item in pairs(_rendering, value)]


def pairs(_rendering: Rendering, value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, Undefined):
        return []
    if isinstance(value, (Reference, Mapping)):
        return list(value.items())
    raise TemplateFailed(f"a {type(value).__name__} has no keys; use a mapping")


def get(_rendering: Rendering, value: Any, key: Any, other: Any = None) -> Any:
    found = look_up(value, key)
    return other if found is MISSING else found


def listed(rendering: Rendering, value: Any) -> list[Any]:
    return rendering.listed(value)


def choice(rendering: Rendering, value: Any) -> Any:
    items = rendering.listed(value)
    chance, draw = rendering.draw()
    return items[int(chance.fraction(draw) * len(items))] if items else ChainableUndefined(_EMPTY)


def percent_format(rendering: Rendering, value: Any, *values: Any, **named: Any) -> str:
    return formatted(rendering, rendering.text(value), named or values)
