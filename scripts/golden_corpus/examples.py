"""Examples of every event in the catalogue, made from its fields: new events need no line here."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple, NewType, Union, get_args, get_origin

import msgspec

from noetl.domain.events import BusinessObjectChanged, Event
from noetl.domain.events.envelope import Draft, Source
from noetl.domain.log import EMPTY_STREAM, SealedEvent, StreamHead
from noetl.domain.payload import StoredPayload, reference_to
from noetl.kernel.ids import CommandId, EventId, ExecutionId, FrameId, LoopId, StageId, WorkerId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.wire.codec import seal

EXECUTION = ExecutionId("264905529753604096")
PARENT_EXECUTION = ExecutionId("264905529753600000")
EVENT = EventId("264905529757802497")
EVENT_BEFORE = EventId("264905529757802496")
STAGE = StageId("264905529761996800")
FRAME = FrameId("264905529761996801")
COMMAND = CommandId(f"{EXECUTION}/load_orders/1/0/1")
TIME = Instant("2026-01-01T00:00:00.001000Z")
DIGEST = "5f" * 32
PRODUCER = "noetl://tenant/default/worker/worker-1"

RICH_TEXT = 'naïve 東京 🚀 e\u0301 \u2028 "q" \\ / \u0001\t\n\x7f'
RICH_OBJECT: dict[str, Any] = {
    "numbers": [0.1, -0.0, 1.0, 1e16, 5e-324, 1.7976931348623157e308, 2**53 + 1, -(2**63)],
    "nested": {"": None, "a": [[], {}, True], "A": False},
    "\ufffd": "keys sort by code point,",
    "\U0001f680": "not by UTF-16 unit",
    "text": RICH_TEXT,
}
RICH_SCOPE = Scope("acme/eu", "Forschung & Entwicklung")


class Flavour(NamedTuple):
    """How to fill the fields of an event."""

    optional: bool
    text: str
    plain_object: dict[str, Any]


MINIMAL = Flavour(optional=False, text="load_orders", plain_object={"limit": 50})
FULL = Flavour(optional=True, text="load_orders", plain_object={"limit": 50, "region": "eu"})
RICH = Flavour(optional=False, text=RICH_TEXT, plain_object=RICH_OBJECT)

_BY_NAME: dict[str, Any] = {
    "playbook_digest": DIGEST,
    "schema_digest": DIGEST,
    "sha256": DIGEST,
    "uri": f"noetl://default/default/results/{EXECUTION}/load_orders/0/0/1@1",
}
_BY_TYPE: dict[Any, Any] = {
    CommandId: COMMAND,
    EventId: EVENT_BEFORE,
    ExecutionId: PARENT_EXECUTION,
    FrameId: FRAME,
    Instant: TIME,
    LoopId: LoopId("load_orders@1"),
    StageId: STAGE,
    WorkerId: WorkerId("worker-1"),
}
_PAYLOAD = msgspec.structs.replace(
    reference_to(DEFAULT_SCOPE, StoredPayload(DIGEST, 102_401), "application/json"),
    schema_digest=DIGEST,
    row_count=50,
    compression="zstd",
)
_NUMBER = 7  # not the default of any field
_SUBJECT: dict[str, dict[str, Any]] = {
    "command": {"command_id": COMMAND},
    "frame": {"stage_id": STAGE, "frame_id": FRAME},
    "stage": {"stage_id": STAGE},
}


def examples(cls: type[Event]) -> Iterator[SealedEvent]:
    """Only what must be there, everything there is, and values that are easy to get wrong."""
    own = Source(scope=DEFAULT_SCOPE, execution_id=EXECUTION, producer=PRODUCER)
    yield _sealed(Draft(event=_filled(cls, MINIMAL), **_required(cls)), EMPTY_STREAM, own)
    child = msgspec.structs.replace(
        own,
        catalog_id="264905529740000000",
        parent_execution_id=PARENT_EXECUTION,
        correlation_id="request-81",
    )
    full = Draft(event=_filled(cls, FULL), **(_required(cls) | _optional(cls)))
    yield _sealed(full, _after(41), child)
    strange = msgspec.structs.replace(own, scope=RICH_SCOPE)
    meta = {"text": RICH_TEXT, "ratio": 1e-7}
    rich = Draft(event=_filled(cls, RICH), **_required(cls), meta=meta)
    yield _sealed(rich, _after(2), strange)
    if cls is BusinessObjectChanged:
        named = Draft(event=_filled(cls, FULL), event_type="order.shipped", **_required(cls))
        yield _sealed(named, _after(1), own)


def _sealed(draft: Draft, head: StreamHead, source: Source) -> SealedEvent:
    (sealed,) = seal([draft], head, source)
    return sealed


def _after(version: int) -> StreamHead:
    return StreamHead(version, EVENT_BEFORE)


def _required(cls: type[Event]) -> dict[str, Any]:
    subject = _SUBJECT.get(cls.TYPE.partition(".")[0], {})
    return {"event_id": EVENT, "event_time": TIME, **subject}


def _optional(cls: type[Event]) -> dict[str, Any]:
    """Envelopes are alike, so only some are shown with all that they can carry."""
    given: dict[str, Any] = {
        "idempotency_key": f"default/default/{COMMAND}/{cls.TYPE}/1",
        "annotations": {"locality": {"node": "a"}, "worker_locator": PRODUCER},
    }
    if cls.TYPE.startswith(("call.", "object.")):
        given |= {
            "causation_id": EVENT_BEFORE,
            "parent_event_id": EVENT_BEFORE,
            "payload_ref": _PAYLOAD,
            "stage_id": STAGE,
            "frame_id": FRAME,
            "command_id": COMMAND,
            "meta": {"epoch_id": "264905529766191104", "attempt": 1},
        }
    return given


def _filled(cls: Any, flavour: Flavour) -> Any:
    fields = [field for field in msgspec.structs.fields(cls) if _is_wanted(field, flavour)]
    return cls(**{field.name: _value(field, flavour) for field in fields})


def _is_wanted(field: msgspec.structs.FieldInfo, flavour: Flavour) -> bool:
    is_rich = flavour is RICH and get_origin(field.type) is dict
    return field.required or flavour.optional or is_rich


def _value(field: msgspec.structs.FieldInfo, flavour: Flavour) -> Any:
    if field.name in _BY_NAME:
        return _BY_NAME[field.name]
    if field.type is bool:
        return not field.default if isinstance(field.default, bool) else True
    return _of_type(field.type, flavour)


def _of_type(kind: Any, flavour: Flavour) -> Any:
    origin = get_origin(kind)
    if isinstance(kind, NewType):
        return _BY_TYPE.get(kind, flavour.text)
    if origin in (Annotated, Union, types.UnionType):
        return _of_type(get_args(kind)[0], flavour)
    if origin is Literal:
        return get_args(kind)[-1]
    if origin is tuple:
        return (_of_type(get_args(kind)[0], flavour),) * 2
    if origin is dict:
        text_only = get_args(kind)[1] is str
        return {"region": flavour.text} if text_only else flavour.plain_object
    if origin is list:
        return [flavour.plain_object, _NUMBER]
    if issubclass(kind, msgspec.Struct):
        return _filled(kind, flavour)
    return flavour.text if kind is str else kind(_NUMBER)
