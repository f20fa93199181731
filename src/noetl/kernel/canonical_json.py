"""Canonical JSON, form `c1`: equal values are equal bytes, on every machine.

`c1` is UTF-8, keys sorted by code point, no white space, no NaN or infinity, numbers as msgspec
writes them. It is versioned because a hash outlives an encoder: never hash with another one.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from noetl.kernel.errors import NotFinite, ValueNotPlain

FORM = "c1"
DEPTH_MAX = 64

_ENCODER = msgspec.json.Encoder(order="sorted")


def encode(value: Any) -> bytes:
    """Bytes of any plain value or msgspec Struct; refuses what JSON cannot carry exactly."""
    try:
        encoded = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):
        check_plain(msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value)
        raise
    # The encoder writes NaN as null, so look for the cause only where there is a symptom.
    if b"null" in encoded:
        check_finite(value)
    return encoded


def encode_recorded(value: Any) -> bytes:
    """The same bytes for values that came out of the log, where NaN can no longer be."""
    return _ENCODER.encode(value)


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def checksum(value: Any) -> str:
    return sha256_hex(encode(value))


def check_plain(value: Any, path: str = "$") -> None:
    """Name the first thing in `value` that JSON cannot carry and give back unchanged."""
    if not _is_surely_plain(value):
        _check_each(value, path, 0)


_ALWAYS_PLAIN = frozenset({bool, int, type(None)})


def _is_surely_plain(value: Any) -> bool:
    """The quick look that almost every value passes; False says only that it takes a closer one."""
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX):
        inside: list[Any] = []
        before: Any = None
        for part in level:
            kind = type(part)
            if part is before or kind in _ALWAYS_PLAIN or (kind is str and part.isascii()):
                continue
            before = part  # the body of a response stands there twice
            if kind is list:
                inside += part
            elif kind is dict and _has_plain_keys(part):
                inside += part.values()
            elif not _is_plain_scalar(part):
                return False
        if not inside:
            return True
        level = inside
    return False


def _has_plain_keys(value: dict[Any, Any]) -> bool:
    for key in value:  # noqa: SIM110 - `all` of a generator costs twice as much
        if type(key) is not str or not key.isascii():
            return False
    return True


def _is_plain_scalar(value: Any) -> bool:
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_each(value: Any, path: str, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise ValueNotPlain(path, f"is nested deeper than {DEPTH_MAX} levels; flatten it")
    if isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise ValueNotPlain(path, f"has the key {key!r}; keys must be text")
            _check_scalar(key, f"the key {key!r} of {path}")
            _check_each(item, f"{path}.{key}", depth + 1)
    elif type(value) is list:
        for index, item in enumerate(value):
            _check_each(item, f"{path}[{index}]", depth + 1)
    else:
        _check_scalar(value, path)


def _check_scalar(value: Any, path: str) -> None:
    if type(value) is float and not math.isfinite(value):
        raise NotFinite(path, value)
    if type(value) is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueNotPlain(path, "holds a lone surrogate; it is not valid Unicode") from None
    elif value is not None and type(value) not in (bool, int, float):
        kind = type(value).__name__
        raise ValueNotPlain(path, f"is a {kind}; use text, numbers, booleans, lists or objects")


def check_finite(value: Any, path: str = "$") -> None:
    """Refuse NaN and infinity anywhere inside, Structs included."""
    if isinstance(value, float) and not math.isfinite(value):
        raise NotFinite(path, value)
    for name, item in _parts(value):
        check_finite(item, f"{path}{name}")


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f".{key}", item) for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif isinstance(value, msgspec.Struct):
        yield from ((f".{name}", getattr(value, name)) for name in value.__struct_fields__)
