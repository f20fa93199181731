"""Operators that cannot be used to fill the memory or to stop the clock."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from noetl.templates.errors import TemplateRefused
from noetl.templates.limits import (
    CHARS_PER_STEP,
    INTEGER_BITS_MAX,
    STEPS_MAX,
    WIDTH_MAX,
    check_at_most,
)
from noetl.templates.reference import Reference
from noetl.templates.rendering import ATOMS, Rendering
from noetl.templates.table_rows import TableRows

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}
_NUMBERS = frozenset({int, float, bool, type(None)})
_KEY_WITH_BRACKET = re.compile(r"%\([^)]*\(")
_PLACEHOLDER = re.compile(r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-#0 +]*)(?P<size>[\d*.]*)")


def calculate(rendering: Rendering, sign: str, left: Any, right: Any) -> Any:
    left, right = rendering.operand(left), rendering.operand(right)
    if isinstance(left, str) or isinstance(right, str):
        return _calculate_text(rendering, sign, left, right)
    if sign == "*":
        _check_product(left, right)
    elif sign == "**":
        _check_power(left, right)
    return rendering.made(_ARITHMETIC[sign](left, right))


def _calculate_text(rendering: Rendering, sign: str, left: Any, right: Any) -> Any:
    if sign == "%" and isinstance(left, str):
        return formatted(rendering, left, right)
    if sign == "*":
        rendering.budget.make(_repeated_length(left, right))
    elif sign == "+" and isinstance(left, str) and isinstance(right, str):
        rendering.budget.make(len(left) + len(right))
    return _ARITHMETIC[sign](left, right)


def compare(rendering: Rendering, name: str, left: Any, right: Any) -> bool:
    left, right = rendering.passed(left), rendering.passed(right)
    if name in ("in", "notin"):
        _pay_for_search(rendering, left, right)
    elif type(left) not in _NUMBERS and type(right) not in _NUMBERS:
        _pay_for_comparison(rendering, left, right)
    return bool(_COMPARISONS[name](left, right))


def formatted(rendering: Rendering, template: str, values: Any) -> str:
    """`'%05d' % 7`, paid for in advance: many placeholders can show one long value."""
    if _KEY_WITH_BRACKET.search(template):
        raise TemplateRefused("the key of a placeholder has a bracket; rename it")
    texts = _as_text(rendering, values)
    longest = max((len(text) for text in _flat(texts) if isinstance(text, str)), default=0)
    for found in _PLACEHOLDER.finditer(template):
        rendering.budget.make(longest + sum(map(_width, found["size"].split("."))))
    return str(template % texts)


def _width(digits: str) -> int:
    if "*" in digits:
        raise TemplateRefused("takes the width of a placeholder from a value; write it as a number")
    # Told by its length first: turning many digits into a number is itself slow.
    check_at_most(len(digits), len(str(WIDTH_MAX)), "the number of digits in a width")
    width = int(digits or 0)
    check_at_most(width, WIDTH_MAX, "the width of a placeholder")
    return width


def _flat(values: Any) -> Iterable[Any]:
    if isinstance(values, dict):
        return values.values()
    return values if isinstance(values, tuple) else (values,)


def _as_text(rendering: Rendering, values: Any) -> Any:
    """Containers as their JSON: Python's own notation would show what it should not."""
    if isinstance(values, tuple):
        return tuple(_as_text(rendering, rendering.operand(value)) for value in values)
    if isinstance(values, Mapping):
        return {key: _as_text(rendering, rendering.operand(item)) for key, item in values.items()}
    if type(values) is str:
        rendering.budget.make(len(values))
        return values
    return values if type(values) in ATOMS else rendering.text(values)


def _pay_for_comparison(rendering: Rendering, left: Any, right: Any) -> None:
    if type(left) is str and type(right) is str:
        rendering.budget.spend(min(len(left), len(right)) // CHARS_PER_STEP)
    elif isinstance(left, TableRows) or isinstance(right, TableRows):
        _pay_for_rows(rendering, left, right)
    elif not isinstance(left, Reference) and not isinstance(right, Reference):
        rendering.weigh_pair(left, right)  # a reference answers from its block or needs to


def _pay_for_rows(rendering: Rendering, left: Any, right: Any) -> None:
    """Rows are compared as long as they are equally many."""
    both = isinstance(left, list | TableRows) and isinstance(right, list | TableRows)
    if both and len(left) == len(right):
        rendering.budget.spend(len(left))


def _pay_for_search(rendering: Rendering, item: Any, place: Any) -> None:
    if isinstance(place, Reference):
        return
    if isinstance(place, TableRows):
        rendering.budget.spend(len(place))
    elif isinstance(place, str) or type(item) not in ATOMS:
        rendering.weigh(place)
    elif isinstance(place, (list, tuple)):
        rendering.budget.spend(len(place))


def _check_product(left: Any, right: Any) -> None:
    check_at_most(_repeated_length(left, right), STEPS_MAX, "the length of the repeated list")
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())


def _repeated_length(left: Any, right: Any) -> int:
    for many, times in ((left, right), (right, left)):
        if isinstance(times, int) and isinstance(many, (str, list, tuple)):
            return len(many) * max(times, 0)
    return 0


def _check_power(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        _check_bits(left.bit_length() * right)


def _check_bits(bits: int) -> None:
    check_at_most(bits, INTEGER_BITS_MAX, "the size of the number in bits")
