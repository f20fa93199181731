"""The short block of a large value that travels in its event, and the record of what it lacks."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple

from noetl.templates.reference import Cut
from noetl.templates.table_rows import TableRows

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
# Text goes before keys, and keys before depth: `rows[0].field` is asked of the widest tables too.
_SHAPES = (
    _Shape(items=64, keys=512, chars=1_024, depth=12),
    _Shape(items=8, keys=256, chars=256, depth=12),
    _Shape(items=1, keys=128, chars=128, depth=12),
    _Shape(items=1, keys=128, chars=32, depth=12),
    _Shape(items=1, keys=64, chars=64, depth=8),
    _Shape(items=1, keys=64, chars=16, depth=8),
    _Shape(items=1, keys=64, chars=32, depth=4),
    _Shape(items=1, keys=32, chars=32, depth=5),
    _Shape(items=1, keys=16, chars=16, depth=5),
    _Shape(items=1, keys=8, chars=16, depth=5),
    _Shape(items=1, keys=16, chars=32, depth=3),
    _Shape(items=0, keys=0, chars=0, depth=1),
)
_KEY_CHARS_MAX = 128  # a longer one is content, not structure


class _NoRoomError(Exception):
    """The block would be too long, so the rest of the value need not be looked at."""


class _Room:
    """Every value in a block takes a byte at least."""

    def __init__(self, values_max: int) -> None:
        self._left = values_max

    def take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _NoRoomError


def extract(value: Any, bytes_max: int = EXTRACT_BYTES_MAX) -> Extract:
    """Objects keep their keys, lists their beginning, long text only its length.

    Neither the block nor the record of what it lacks is larger than `bytes_max`.
    """
    for shape in _SHAPES:
        try:
            short = _shortened(value, shape, shape.depth, _Room(bytes_max))
        except _NoRoomError:
            continue
        if _fits(short.block, bytes_max) and (
            short.cut is None or _fits(cut_as_plain(short.cut), bytes_max)
        ):
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


def _fits(plain: Any, bytes_max: int) -> bool:
    return len(json.dumps(plain, ensure_ascii=False).encode()) <= bytes_max


def _shortened(value: Any, shape: _Shape, depth: int, room: _Room) -> Extract:
    room.take()
    if isinstance(value, str):
        return _short_text(value, shape)
    if isinstance(value, dict):
        return _short_object(value, shape, depth, room)
    if isinstance(value, list | TableRows):
        return _short_list(value, shape, depth, room)
    return Extract(value, None)


def _short_text(value: str, shape: _Shape) -> Extract:
    return Extract(value, None) if len(value) <= shape.chars else Extract("", Cut(len(value)))


def _short_object(value: dict[str, Any], shape: _Shape, depth: int, room: _Room) -> Extract:
    count = shape.keys if depth else 0
    kept = list(islice((key for key in value if len(key) <= _KEY_CHARS_MAX), count))
    parts = {key: _shortened(value[key], shape, depth - 1, room) for key in kept}
    block = {key: part.block for key, part in parts.items()}
    return Extract(block, _cut(len(value), len(kept), parts))


def _short_list(value: list[Any] | TableRows, shape: _Shape, depth: int, room: _Room) -> Extract:
    count = shape.items if depth else 0
    parts = {at: _shortened(item, shape, depth - 1, room) for at, item in enumerate(value[:count])}
    return Extract([part.block for part in parts.values()], _cut(len(value), len(parts), parts))


def _cut(length: int, kept: int, parts: Mapping[Any, Extract]) -> Cut | None:
    within = {key: part.cut for key, part in parts.items() if part.cut is not None}
    if kept == length and not within:
        return None
    return Cut(None if kept == length else length, within)
