"""The query columns beside an event's bytes: what SQL users filter and group by.

Derived from the event and never read back by this package, so they can change with a migration.
"""

from typing import Any, NamedTuple

import msgspec

from noetl.domain.events import EVENT_CLASSES, Event
from noetl.domain.log import SealedEvent
from noetl.kernel.canonical_json import encode_recorded

UNIQUE_FACTS = {
    "command.issued": "command_id",
    "loop.done": "loop_id",
    "loop.fanin.completed": "epoch_id",
    "checkpoint.committed": "epoch_id",
}
"""Events that say something once per execution, and the name in `meta` of what they say it of."""

_META_NAMES = frozenset(
    {
        "chunk_index",
        "collection_size",
        "epoch_id",
        "iter_index",
        "iter_key",
        "last_event_id",
        "loop_id",
        "shard_attempt",
        "shard_id",
        "total_shards",
    }
)
"""Names that existing queries look for in `meta`, wherever the event keeps them."""

_OWN_COLUMNS = frozenset({"step", "status", "result", "error", "worker_id", "duration_ms"})


class QueryColumns(msgspec.Struct, frozen=True, gc=False):
    """Columns of `noetl.event` that do not exist in the envelope under the same name."""

    node_name: str | None
    status: str | None
    result: bytes | None
    error: str | None
    context: bytes | None
    meta: bytes | None
    worker_id: str | None
    duration_ms: int | None


class _Shape(NamedTuple):
    """What a class of events has, looked up once instead of for every event."""

    own: frozenset[str]
    context: tuple[str, ...]
    meta: tuple[str, ...]
    has_loop: bool
    is_command: bool


def _shape(cls: type[Event]) -> _Shape:
    fields = frozenset(cls.__struct_fields__)  # type: ignore[attr-defined]
    return _Shape(
        own=fields & _OWN_COLUMNS,
        context=tuple(sorted(fields - _OWN_COLUMNS)),
        meta=tuple(sorted(fields & _META_NAMES)),
        has_loop="loop_id" in fields,
        is_command=cls.TYPE.startswith("command."),
    )


_SHAPES = {cls: _shape(cls) for cls in EVENT_CLASSES}


def query_columns(sealed: SealedEvent) -> QueryColumns:
    event: Any = sealed.event
    own, context_names, meta_names, _, _ = shape = _SHAPES[type(event)]
    result = event.result if "result" in own else None
    error = event.error if "error" in own else None
    context = {
        name: value for name in context_names if not _is_nothing(value := getattr(event, name))
    }
    return QueryColumns(
        _node_name(sealed, shape),
        event.status if "status" in own else _status(result, error),
        encode_recorded(result) if result is not None else None,
        error.message if error is not None else None,
        encode_recorded(context) if context else None,
        _meta(sealed, meta_names),
        event.worker_id if "worker_id" in own else None,
        event.duration_ms if "duration_ms" in own else None,
    )


def _is_nothing(value: Any) -> bool:
    """None, no, or an empty map or list: what an event leaves out when it is stored."""
    return value is None or value is False or (isinstance(value, (dict, list, tuple)) and not value)


def unique_fact(sealed: SealedEvent) -> str | None:
    """The name of a fact that may exist once per execution, or None for all others."""
    event: Any = sealed.event
    match event.TYPE:
        case "command.issued":
            return f"command.issued/{sealed.envelope.command_id}"
        case "loop.done" | "loop.fanin.completed":
            return f"{event.TYPE}/{event.loop_id}"
        case "checkpoint.committed":
            return f"checkpoint.committed/{event.epoch_id}"
        case _:
            return None


def _node_name(sealed: SealedEvent, shape: _Shape) -> str | None:
    """The step: from the event, or from the coordinates that the event is about."""
    event: Any = sealed.event
    if "step" in shape.own:
        name: str | None = event.step
        return name
    if shape.is_command:
        # execution/step/visit/iteration/try, and the step itself may have slashes
        _, _, coordinates = str(sealed.envelope.command_id).partition("/")
        return coordinates.rsplit("/", 3)[0] or None
    if shape.has_loop:
        return str(event.loop_id).rpartition("@")[0] or None
    return None


def _status(result: Any, error: Any) -> str | None:
    if result is not None:
        status: str = result.status
        return status
    return None if error is None else "error"  # the word that results use


def _meta(sealed: SealedEvent, names: tuple[str, ...]) -> bytes | None:
    envelope = sealed.envelope
    meta: dict[str, Any] = {**envelope.meta, **sealed.annotations}
    if envelope.command_id is not None:
        meta["command_id"] = envelope.command_id
    for name in names:
        value = getattr(sealed.event, name)
        if value is not None:
            meta[name] = value
            if name == "loop_id":
                meta["epoch_id"] = value
    return encode_recorded(meta) if meta else None
