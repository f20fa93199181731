"""Turn what code gave into JSON, or say which part of it JSON cannot carry.

Runs in the process of the code: standard library only, and as little of it as possible.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

RESULT_BYTES_MAX = 256 * 1024**2
DEPTH_MAX = 400
KEY_TYPES = (str, int, float, bool, type(None))  # as json.dumps has it


class NotPlain(Exception):
    """A part of the result that cannot be recorded; the message names its place."""


def encoded(result: Any) -> bytes:
    try:
        text = json.dumps(result, default=plain, allow_nan=False, ensure_ascii=False)
        data = text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        trouble = next(_troubles(result, "result", 0), f"result cannot be written as JSON: {error}")
        raise NotPlain(trouble) from error
    if len(data) > RESULT_BYTES_MAX:
        raise NotPlain(
            f"result has {len(data)} bytes as JSON, the limit is {RESULT_BYTES_MAX};"
            " write it to a file, a table or an object and return where it is"
        )
    return data


def plain(value: Any) -> Any:
    """What stands for a value that JSON does not know. Raises TypeError."""
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("is bytes; decode it, or encode it with base64")
    if isinstance(value, set | frozenset):
        return _in_order(value)
    if isinstance(value, Mapping):
        return dict(value)
    for attribute, convert in _CONVERSIONS:
        if hasattr(value, attribute) and not isinstance(value, type):
            return convert(value)
    if hasattr(value, "__len__") and hasattr(value, "__iter__"):
        return list(value)
    name = type(value).__name__
    raise TypeError(f"is a {name}, which JSON cannot carry; convert it to numbers, text and lists")


def _in_order(value: set[Any] | frozenset[Any]) -> list[Any]:
    try:
        return sorted(value)  # a set's own order differs from run to run
    except TypeError:
        return list(value)


def _number(value: Any) -> Any:
    """A Decimal as the number it is."""
    if not value.is_finite():
        return float(value)  # refused as such, with its place
    return int(value) if value.as_tuple().exponent >= 0 else float(value)


def _records(value: Any) -> Any:
    """A table as its rows; anything else as it describes itself."""
    return value.to_dict("records") if hasattr(value, "columns") else value.to_dict()


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


_CONVERSIONS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("isoformat", lambda value: value.isoformat()),  # dates, times; those of pandas too
    ("as_tuple", _number),  # Decimal
    ("total_seconds", lambda value: value.total_seconds()),
    ("__fspath__", str),
    ("to_pylist", lambda value: value.to_pylist()),  # tables and columns of Arrow
    ("to_dicts", lambda value: value.to_dicts()),  # tables of polars
    ("tolist", lambda value: value.tolist()),  # arrays and scalars of numpy, columns of pandas
    ("to_dict", _records),
    ("model_dump", lambda value: value.model_dump()),
    ("_asdict", lambda value: value._asdict()),
    ("__dataclass_fields__", _fields),
    ("_value_", lambda value: value.value),  # members of an enumeration
    ("hex", str),  # UUID
)


def _troubles(value: Any, path: str, depth: int) -> Iterator[str]:
    """Every place that JSON cannot carry; slow, for when something is known to be wrong."""
    if depth > DEPTH_MAX:
        yield f"{path[:200]}… is nested more than {DEPTH_MAX} deep, or contains itself"
    elif value is None or isinstance(value, int | float | str):
        yield from _troubles_of_scalar(value, path)
    elif isinstance(value, dict):
        yield from _troubles_of_dict(value, path, depth)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _troubles(item, f"{path}[{index}]", depth + 1)
    else:
        yield from _troubles_of_other(value, path, depth)


def _troubles_of_scalar(value: float | str | None, path: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{path} is {value}; only finite numbers can be recorded, use None"
    if isinstance(value, str) and any("\ud800" <= one <= "\udfff" for one in value):
        yield f"{path} is a text with half a character (a surrogate); decode it properly"


def _troubles_of_dict(value: dict[Any, Any], path: str, depth: int) -> Iterator[str]:
    for key, item in value.items():
        if not isinstance(key, KEY_TYPES):
            yield f"{path} has the key {key!r}, a {type(key).__name__}; keys must be texts"
            continue
        yield from _troubles(str(key), f"{path}, in a key,", depth + 1)
        yield from _troubles(item, f"{path}.{key}", depth + 1)


def _troubles_of_other(value: Any, path: str, depth: int) -> Iterator[str]:
    try:
        stands_for = plain(value)
    except (TypeError, ValueError) as error:
        yield f"{path} {error}"
        return
    yield from _troubles(stands_for, path, depth + 1)
