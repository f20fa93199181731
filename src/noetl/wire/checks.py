"""What must hold before an event is sealed, each breach with a name of its own."""

from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from noetl.domain.events import EVENT_CLASSES, CheckpointCommitted, Event
from noetl.domain.events.envelope import Draft, Source
from noetl.domain.events.values import Failure, Result
from noetl.kernel import canonical_json, instant
from noetl.kernel.errors import EventTooLarge, FieldInvalid, ScopeMissing

ANNOTATIONS = frozenset({"locality", "worker_locator"})
"""The parts of `meta` that differ between machines and so stay outside the checksum."""

ANNOTATION_BYTES_MAX = 8 * 1024
NAME_CHARACTERS_MAX = 600
"""An entry of an index holds at most some 2,700 bytes, and a character takes up to four."""

_NAMES = ("idempotency_key", "command_id", "stage_id", "frame_id")

_EVENT_CLASSES = frozenset(EVENT_CLASSES)
_SUSPICIOUS_LEVELS = canonical_json.DEPTH_MAX // 2


def _may_nest(hint: Any) -> bool:
    return any(
        part in (Result, Failure) or get_origin(part) is dict for part in (hint, *get_args(hint))
    )


_FREE_FORM: dict[type[Event], tuple[str, ...]] = {
    cls: tuple(name for name, hint in get_type_hints(cls).items() if _may_nest(hint))
    for cls in EVENT_CLASSES
}
_SNOWFLAKE_MAX = str(2**63 - 1)


def check_source(source: Source) -> None:
    for field in source.scope._fields:
        value: object = getattr(source.scope, field)  # typed as text; callers may pass anything
        if not isinstance(value, str) or not value:
            raise ScopeMissing(field)
        check_name("scope", field, value)
    if not is_snowflake(source.execution_id):
        raise FieldInvalid("execution_id", f"{source.execution_id!r} is not a snowflake id")
    check_name("source", "producer", source.producer)


def check_draft(draft: Draft) -> None:
    event = draft.event
    if type(event) not in _EVENT_CLASSES:
        event_type = str(draft.event_type or getattr(event, "TYPE", "?"))
        raise FieldInvalid(event_type, f"{type(event).__name__} is not in the catalogue")
    if not is_snowflake(draft.event_id):
        raise FieldInvalid(event.TYPE, f"event_id {draft.event_id!r} is not a snowflake id")
    instant.check(draft.event_time)
    if draft.meta and not ANNOTATIONS.isdisjoint(draft.meta):
        names = " and ".join(sorted(ANNOTATIONS))
        raise FieldInvalid(
            event.TYPE, f"{names} are annotations, not meta: they are not checksummed"
        )
    if draft.annotations:
        _check_annotations(event.TYPE, draft.annotations)


def check_names(draft: Draft, aggregate_id: str) -> None:
    """What stores index must fit into an index and be readable everywhere."""
    check_name(draft.event.TYPE, "aggregate_id", aggregate_id)
    if type(draft.event) is CheckpointCommitted:
        check_name(draft.event.TYPE, "epoch_id", draft.event.epoch_id)
    for field in _NAMES:
        name = getattr(draft, field)
        if name is not None:
            check_name(draft.event.TYPE, field, name)


def check_name(where: str, field: str, name: object) -> None:
    if not isinstance(name, str) or not name:
        raise FieldInvalid(where, f"{field} is {name!r}; it must be text that is not empty")
    if len(name) > NAME_CHARACTERS_MAX:
        raise FieldInvalid(where, f"{field} has more than {NAME_CHARACTERS_MAX} characters")
    if "\0" in name:
        raise FieldInvalid(where, f"{field} holds a NUL character")


def is_snowflake(text: object) -> bool:
    """Decimal, as an integer column gives it back: 63 bits, no leading zero."""
    return (
        isinstance(text, str)
        and text.isascii()
        and text.isdigit()
        and (text[0] != "0" or text == "0")
        and (len(text), text) <= (len(_SNOWFLAKE_MAX), _SNOWFLAKE_MAX)
    )


def name_the_fault(event: Event, meta: dict[str, Any]) -> None:
    """Raise for the first value that JSON cannot carry or nests too deep; only on a symptom."""
    canonical_json.check_plain(_as_plain(event), "body")
    canonical_json.check_plain(meta, "meta")


def looks_deep(event: Event, meta: dict[str, Any]) -> bool:
    """Whether free-form values nest so deep that it is worth counting. Most are flat: be quick."""
    if meta and _nests(meta, _SUSPICIOUS_LEVELS):
        return True
    for name in _FREE_FORM[type(event)]:
        value = getattr(event, name)
        if type(value) is Result:
            value = value.context
        elif type(value) is Failure:
            value = value.detail
        if value and _nests(value, _SUSPICIOUS_LEVELS):
            return True
    return False


def _nests(value: Any, levels: int) -> bool:
    for item in value.values() if type(value) is dict else value:
        is_container = type(item) is dict or type(item) is list
        if is_container and (levels == 0 or _nests(item, levels - 1)):
            return True
    return False


def _check_annotations(event_type: str, annotations: dict[str, Any]) -> None:
    unknown = set(annotations) - ANNOTATIONS
    if unknown:
        allowed = " and ".join(sorted(ANNOTATIONS))
        raise FieldInvalid(event_type, f"annotations may hold {allowed}, not {sorted(unknown)}")
    canonical_json.check_plain(annotations, "annotations")
    size_bytes = len(canonical_json.encode(annotations))
    if size_bytes > ANNOTATION_BYTES_MAX:
        raise EventTooLarge(
            f"annotations of {event_type}",
            size_bytes=size_bytes,
            size_bytes_max=ANNOTATION_BYTES_MAX,
        )


def _as_plain(value: Any) -> Any:
    """Structs and their typed tuples opened up; free-form values left exactly as they are."""
    if isinstance(value, msgspec.Struct):
        return {name: _as_plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, tuple):
        return [_as_plain(item) for item in value]
    return value
