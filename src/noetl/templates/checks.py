"""What `{{ value is test }}` offers. References answer by their kind, without being opened."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import Undefined

from noetl.templates.operators import compare
from noetl.templates.reference import Kind, Reference
from noetl.templates.rendering import Rendering
from noetl.templates.table_rows import TableRows

Check = Callable[..., bool]


def _typed(types: Any, *kinds: Kind) -> Check:
    def check(_rendering: Rendering, value: Any) -> bool:
        if isinstance(value, Reference):
            return value.known_kind() in kinds
        if isinstance(value, TableRows):
            return "list" in kinds
        return isinstance(value, types)

    return check


def _compared(name: str) -> Check:
    def check(rendering: Rendering, value: Any, other: Any) -> bool:
        return compare(rendering, name, value, other)

    return check


def _number(_rendering: Rendering, value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _integer(_rendering: Rendering, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _defined(_rendering: Rendering, value: Any) -> bool:
    return not isinstance(value, Undefined)


def _undefined(_rendering: Rendering, value: Any) -> bool:
    return isinstance(value, Undefined)


def _none(_rendering: Rendering, value: Any) -> bool:
    return value is None


def _divisible(rendering: Rendering, value: Any, by: Any) -> bool:
    return bool(rendering.operand(value) % by == 0)


def _even(rendering: Rendering, value: Any) -> bool:
    return _divisible(rendering, value, 2)


def _odd(rendering: Rendering, value: Any) -> bool:
    return not _divisible(rendering, value, 2)


def _true(_rendering: Rendering, value: Any) -> bool:
    return value is True


def _false(_rendering: Rendering, value: Any) -> bool:
    return value is False


_SEQUENCES = (list, tuple, str, range)

CHECKS: dict[str, Check] = {
    "boolean": _typed(bool),
    "defined": _defined,
    "divisibleby": _divisible,
    "even": _even,
    "false": _false,
    "float": _typed(float),
    "integer": _integer,
    "iterable": _typed(Iterable, "list", "object", "text"),
    "mapping": _typed(Mapping, "object"),
    "none": _none,
    "number": _number,
    "odd": _odd,
    "sequence": _typed((*_SEQUENCES, Mapping), "list", "object", "text"),
    "string": _typed(str, "text"),
    "true": _true,
    "undefined": _undefined,
}
CHECKS |= dict.fromkeys(("eq", "equalto", "=="), _compared("eq"))
CHECKS |= dict.fromkeys(("ne", "!="), _compared("ne"))
CHECKS |= dict.fromkeys(("lt", "lessthan", "<"), _compared("lt"))
CHECKS |= dict.fromkeys(("gt", "greaterthan", ">"), _compared("gt"))
CHECKS |= dict.fromkeys(("le", "<="), _compared("lteq"))
CHECKS |= dict.fromkeys(("ge", ">="), _compared("gteq"))
CHECKS |= {"in": _compared("in")}
