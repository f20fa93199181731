"""The short block of a large value that travels in its event, and the record of what it lacks."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from noetl.templates.reference import Cut

EXTRACT_BYTES_MAX = 4_096


class Extract(NamedTuple):
    block: Any
    cut: Cut | None  # None: the block is the value


class _Shape(NamedTuple):
    """How much of a value is kept at each level."""

    items: int
    keys: int
    chars: int
    depth: int


# From generous to bare; the first that fits is taken. The last one fits always: it has no content.
_SHAPES = (
    _Shape(items=64, keys=512, chars=1_024, depth=12),
    _Shape(items=8, keys=256, chars=256, depth=8),
    _Shape(items=1, keys=128, chars=128, depth=6),
    _Shape(items=1, keys=64, chars=64, depth=4),
    _Shape(items=1, keys=16, chars=32, depth=3),
    _Shape(items=0, keys=0, chars=0, depth=1),
)
_KEY_CHARS_MAX = 128  # a longer one is content, not structure


def extract(value: Any, bytes_max: int = EXTRACT_BYTES_MAX) -> Extract:
    """Objects keep their keys, lists their beginning, long text only its length."""
    for shape in _SHAPES:
        short = _shortened(value, shape, shape.depth)
        if len(json.dumps(short.block, ensure_ascii=False).encode()) <= bytes_max:
            return short
    return short


def cut_as_plain(cut: Cut) -> dict[str, Any]:
    """For an event: `{"length": 50000, "within": {"0": {…}}}`, empty parts left out."""
    within = {str(key): cut_as_plain(inner) for key, inner in cut.within.items()}
    plain: dict[str, Any] = {} if cut.length is None else {"length": cut.length}
    return {**plain, "within": within} if within else plain


def cut_from_plain(plain: Mapping[str, Any], block: Any) -> Cut:
    """The block tells positions from keys that happen to be digits."""
    as_key = int if isinstance(block, list) else str
    within = {
        as_key(key): cut_from_plain(inner, block[as_key(key)])
        for key, inner in plain.get("within", {}).items()
    }
    return Cut(plain.get("length"), within)


def _shortened(value: Any, shape: _Shape, depth: int) -> Extract:
    if isinstance(value, str):
        return _short_text(value, shape)
    if isinstance(value, dict):
        return _short_object(value, shape, depth)
    if isinstance(value, list):
        return _short_list(value, shape, depth)
    return Extract(value, None)


def _short_text(value: str, shape: _Shape) -> Extract:
    return Extract(value, None) if len(value) <= shape.chars else Extract("", Cut(len(value)))


def _short_object(value: dict[str, Any], shape: _Shape, depth: int) -> Extract:
    room = shape.keys if depth else 0
    kept = [key for key in value if len(key) <= _KEY_CHARS_MAX][:room]
    parts = {key: _shortened(value[key], shape, depth - 1) for key in kept}
    block = {key: part.block for key, part in parts.items()}
    return Extract(block, _cut(len(value), len(kept), parts))


def _short_list(value: list[Any], shape: _Shape, depth: int) -> Extract:
    room = shape.items if depth else 0
    parts = {at: _shortened(item, shape, depth - 1) for at, item in enumerate(value[:room])}
    return Extract([part.block for part in parts.values()], _cut(len(value), len(parts), parts))


def _cut(length: int, kept: int, parts: Mapping[Any, Extract]) -> Cut | None:
    within = {key: part.cut for key, part in parts.items() if part.cut is not None}
    if kept == length and not within:
        return None
    return Cut(None if kept == length else length, within)
