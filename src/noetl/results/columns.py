"""Which Arrow type holds a column of plain values without loss, and which columns are JSON text.

A column has a type when all its values have one: null apart, all booleans, all integers of 64
bits, all finite floats, all text, all lists of such, or all objects with the same keys.
Every other column is text: the canonical JSON of each value, marked so in its field.
"""

import math
import operator
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from types import NoneType
from typing import Any

import pyarrow as pa

from noetl.kernel import canonical_json
from noetl.results.batch_file import ENCODING, JSON

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
TEXT_CHARS_MAX = (2**31 - 1) // 4
"""Offsets of Arrow's plain text have 32 bits, and a character takes four bytes at most."""
DEPTH_MAX = 8  # deeper values are easier read as JSON


def json_field(name: str) -> Any:
    """A column whose text is JSON, for values that Arrow cannot hold without loss."""
    return _json_field(name, pa.string())


def is_json(field: Any) -> bool:
    return bool(field.metadata and field.metadata.get(ENCODING) == JSON)


def column_of(name: str, values: list[Any]) -> tuple[Any, list[Any]]:
    """The field, and the values to put into it. Raises NotFinite, ValueNotPlain."""
    kind = type_of(values)
    if kind is not None:
        return pa.field(name, kind), values
    texts = [None if value is None else canonical_json.encode(value).decode() for value in values]
    return _json_field(name, _text_type(texts)), texts


def type_of(values: Sequence[Any], depth: int = 0) -> Any:
    """None when there is no type whose values read back are exactly these."""
    kinds = set(map(type, values))
    present = values
    if NoneType in kinds:
        kinds.remove(NoneType)
        present = [value for value in values if value is not None]
    if not kinds:
        return pa.null()
    if len(kinds) > 1 or depth > DEPTH_MAX:
        return None
    chosen = _BY_KIND.get(kinds.pop())
    return chosen(present, depth) if chosen else None


def _json_field(name: str, text_type: Any) -> Any:
    return pa.field(name, text_type, metadata={ENCODING: JSON})


def _text_type(values: Sequence[str | None]) -> Any:
    chars = sum(map(len, filter(None, values)))
    return pa.string() if chars <= TEXT_CHARS_MAX else pa.large_string()


def _boolean(_values: Sequence[Any], _depth: int) -> Any:
    return pa.bool_()


def _integer(values: Sequence[int], _depth: int) -> Any:
    return pa.int64() if INT64_MIN <= min(values) and max(values) <= INT64_MAX else None


def _double(values: Sequence[float], _depth: int) -> Any:
    return pa.float64() if all(map(math.isfinite, values)) else None


def _text(values: Sequence[str], _depth: int) -> Any:
    return _text_type(values)


def _list(values: Sequence[list[Any]], depth: int) -> Any:
    item = type_of(list(chain.from_iterable(values)), depth + 1)
    return None if item is None else pa.list_(item)


def _object(values: Sequence[dict[str, Any]], depth: int) -> Any:
    names = values[0].keys()
    if not names or set(map(type, names)) != {str}:
        return None
    if len(set(map(tuple, values))) > 1 and not all(map(names.__eq__, map(dict.keys, values))):
        return None
    fields = []
    before: list[Any] = []
    kind = None
    for name in sorted(names):
        inside = list(map(itemgetter(name), values))
        # The body of a response stands there twice: it is looked through once.
        if not before or not all(map(operator.is_, inside, before)):
            kind = type_of(inside, depth + 1)
        if kind is None:
            return None
        fields.append(pa.field(name, kind))
        before = inside
    return pa.struct(fields)


_BY_KIND: dict[type, Any] = {
    bool: _boolean,
    int: _integer,
    float: _double,
    str: _text,
    list: _list,
    dict: _object,
}
