"""One type for columns that several files hold each in its own, and values moved into that type.

A frame's table has the types of its own rows: numbers may be whole in one and not in the next, a
field may be null throughout. Where no type holds all, a column is JSON text, marked so.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from noetl.kernel import canonical_json
from noetl.results.columns import is_json, json_field


def unified(fields: Sequence[Any]) -> Any:
    """The field for all of them; they have one name. Null throughout is text."""
    name = fields[0].name
    if any(map(is_json, fields)):
        return json_field(name)
    kind = _kind_for([field.type for field in fields])
    if kind is None:
        return json_field(name)
    return pa.field(name, _plain(kind, pa.string()))


def unified_columns(columns: Iterable[Sequence[Any]]) -> list[Any]:
    """Fields by name, in the order in which names first come."""
    by_name: dict[str, list[Any]] = {}
    for fields in columns:
        for field in fields:
            by_name.setdefault(field.name, []).append(field)
    return [unified(fields) for fields in by_name.values()]


def fitted(array: Any, given: Any, wanted: Any) -> Any:
    """The values of a column in the type that was found for all files."""
    if is_json(wanted):
        return array.cast(pa.string()) if is_json(given) else _json_texts(array.to_pylist())
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted.type)
    if array.type == wanted.type:
        return array
    try:
        return array.cast(wanted.type)
    except pa.ArrowException:  # of a struct that lacks fields, deep inside
        return pa.array(array.to_pylist(), wanted.type)


def _json_texts(values: list[Any]) -> Any:
    texts = [None if value is None else canonical_json.encode(value).decode() for value in values]
    return pa.array(texts, pa.string())


def _kind_for(kinds: Sequence[Any]) -> Any:
    """None: there is none."""
    present = [_plain(kind, pa.null()) for kind in kinds if not pa.types.is_null(kind)]
    if not present:
        return pa.null()
    first = present[0]
    if all(kind == first for kind in present):
        return first
    if all(map(_is_number, present)):
        return pa.float64()
    if all(map(pa.types.is_struct, present)):
        return _struct_for(present)
    if all(map(pa.types.is_list, present)):
        item = _kind_for([kind.value_type for kind in present])
        return None if item is None else pa.list_(item)
    return None


def _struct_for(kinds: Sequence[Any]) -> Any:
    by_name: dict[str, list[Any]] = {}
    for kind in kinds:
        for field in kind:
            by_name.setdefault(field.name, []).append(field.type)
    found = {name: _kind_for(inner) for name, inner in by_name.items()}
    if any(kind is None for kind in found.values()):
        return None
    return pa.struct([pa.field(name, kind) for name, kind in found.items()])


def _plain(kind: Any, unknown: Any) -> Any:
    """One type for whole numbers, one for others, one for text, and `unknown` where all is null."""
    types = pa.types
    if types.is_integer(kind):
        return pa.int64()
    if types.is_floating(kind):
        return pa.float64()
    if types.is_large_string(kind):
        return pa.string()
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type, unknown))
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type, unknown)) for field in kind])
    return unknown if types.is_null(kind) else kind


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
