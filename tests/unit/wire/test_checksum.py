"""The checksum covers every field of an event except those that differ between stores."""

from typing import Any

import msgspec
import pytest

from noetl.domain.events import StepEntered
from noetl.domain.events.envelope import Draft, Envelope, Source
from noetl.domain.log import EMPTY_STREAM, SealedEvent, StreamHead
from noetl.kernel.ids import EventId, StepName
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.testing.histories import execution_ids
from noetl.wire.codec import open_stored, seal
from tests.unit.specimens import PAYLOAD, PLACE
from tests.unit.wire.rows import row_of

EXECUTION, OTHER_EXECUTION = execution_ids(2)

SOURCE = Source(
    scope=Scope("acme", "research"),
    execution_id=EXECUTION,
    producer="noetl://tenant/acme/worker/w1",
    catalog_id="77",
    parent_execution_id=OTHER_EXECUTION,
    correlation_id="request-1",
)
DRAFT = Draft(
    event_id=EventId("1000"),
    event=StepEntered(step=StepName("load")),
    event_time=Instant("2026-01-01T00:00:00.000000Z"),
    causation_id=EventId("5"),
    parent_event_id=EventId("6"),
    idempotency_key="key",
    payload_ref=PAYLOAD,
    meta={"trace": 1},
    annotations={"locality": {"zone": "a"}, "worker_locator": "w1"},
    **PLACE,
)
HEAD = StreamHead(4, EventId("999"))

GOLDEN_BYTES = (
    b'{"aggregate_id":"264905529753604096","aggregate_type":"execution",'
    b'"body":{"step":"load"},"catalog_id":"77","causation_id":"5","command_id":"c1",'
    b'"correlation_id":"request-1","event_id":"1000","event_time":"2026-01-01T00:00:00.000000Z",'
    b'"event_type":"step.enter","execution_id":"264905529753604096","frame_id":"f1",'
    b'"idempotency_key":"key","meta":{"trace":1},"organization_id":"research",'
    b'"parent_event_id":"6","parent_execution_id":"264905529753604097",'
    b'"payload_ref":{"byte_length":12,"compression":"zstd","kind":"payload_store",'
    b'"media_type":"text/plain","organization_id":"default","row_count":4,'
    b'"schema_digest":"0101010101010101010101010101010101010101010101010101010101010101",'
    b'"sha256":"efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef",'
    b'"tenant_id":"default","uri":"noetl://tenant/default/org/default/payload/'
    b'efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef"},'
    b'"prev_event_id":"999","producer":"noetl://tenant/acme/worker/w1",'
    b'"schema_name":"noetl.step.enter","schema_version":1,"stage_id":"s1",'
    b'"stream_id":"execution/264905529753604096","stream_version":5,"tenant_id":"acme"}'
)
GOLDEN_CHECKSUM = "ecde65a41570da682ea2b8217e133115e1be8b5eb1c3c6f491bc9662e5984e46"


def sealed(draft: Draft = DRAFT, head: StreamHead = HEAD, source: Source = SOURCE) -> SealedEvent:
    (one,) = seal([draft], head, source)
    return one


def of_draft(**fields: Any) -> SealedEvent:
    return sealed(draft=msgspec.structs.replace(DRAFT, **fields))


def of_source(**fields: Any) -> SealedEvent:
    return sealed(source=msgspec.structs.replace(SOURCE, **fields))


FLIPPED: dict[str, SealedEvent] = {
    "event_id": of_draft(event_id="1001"),
    "event_time": of_draft(event_time="2026-01-01T00:00:00.000001Z"),
    "causation_id": of_draft(causation_id="7"),
    "parent_event_id": of_draft(parent_event_id=None),
    "idempotency_key": of_draft(idempotency_key="other"),
    "payload_ref": of_draft(payload_ref=msgspec.structs.replace(PAYLOAD, byte_length=13)),
    "stage_id": of_draft(stage_id="s2"),
    "frame_id": of_draft(frame_id=None),
    "command_id": of_draft(command_id="c2"),
    "meta": of_draft(meta={"trace": 2}),
    "tenant_id": of_source(scope=Scope("acme2", "research")),
    "organization_id": of_source(scope=Scope("acme", "sales")),
    "execution_id": of_source(execution_id=OTHER_EXECUTION),
    "producer": of_source(producer="noetl://tenant/acme/worker/w2"),
    "catalog_id": of_source(catalog_id=None),
    "parent_execution_id": of_source(parent_execution_id=None),
    "correlation_id": of_source(correlation_id="request-2"),
    "stream_version": sealed(head=StreamHead(5, HEAD.last_event_id)),
    "prev_event_id": sealed(head=StreamHead(4, EventId("998"))),
}
"""Every field of the envelope that a writer chooses, set to something else."""

DERIVED = {
    "event_type", "schema_name", "schema_version", "stream_id", "aggregate_type", "aggregate_id",
}  # fmt: skip
"""Follow from the event's class and its source; their bytes are checked below."""


def test_every_field_of_the_envelope_is_looked_at() -> None:
    assert set(FLIPPED) | DERIVED == set(Envelope.__struct_fields__)


def test_the_bytes_of_an_event_are_the_same_for_ever() -> None:
    assert sealed().canonical == GOLDEN_BYTES
    assert sealed().checksum == GOLDEN_CHECKSUM


@pytest.mark.parametrize("field", FLIPPED)
def test_another_value_is_another_checksum(field: str) -> None:
    assert getattr(FLIPPED[field].envelope, field) != getattr(sealed().envelope, field)
    assert FLIPPED[field].checksum != sealed().checksum


@pytest.mark.parametrize("field", sorted(DERIVED))
def test_what_is_derived_is_in_the_bytes_too(field: str) -> None:
    assert field in msgspec.json.decode(sealed().canonical)


def test_another_body_is_another_checksum() -> None:
    assert of_draft(event=StepEntered(step=StepName("load"), visit=2)).checksum != GOLDEN_CHECKSUM


@pytest.mark.parametrize("annotations", [{}, {"locality": {"zone": "b"}}, {"worker_locator": "x"}])
def test_annotations_do_not_change_the_checksum(annotations: dict[str, Any]) -> None:
    assert of_draft(annotations=annotations).checksum == GOLDEN_CHECKSUM


def test_where_and_when_a_store_put_it_does_not_change_the_checksum() -> None:
    here = row_of(sealed())
    there = msgspec.structs.replace(
        here, position=12_345, ingest_time=Instant("2030-01-01T00:00:00.000000Z")
    )
    assert here.checksum == there.checksum == GOLDEN_CHECKSUM
    assert open_stored(there).envelope == open_stored(here).envelope


def test_a_first_event_has_no_event_before_it() -> None:
    assert b"prev_event_id" not in sealed(head=EMPTY_STREAM).canonical
