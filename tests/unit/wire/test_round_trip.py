"""Whatever is sealed opens again to the same event."""

import msgspec
import pytest

from noetl.domain.events import EVENT_CLASSES, BusinessObjectChanged, Event
from noetl.domain.log import EMPTY_STREAM, StreamHead
from noetl.kernel import canonical_json
from noetl.kernel.ids import EventId
from noetl.testing.given import stored
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import open_stored, seal
from tests.unit.specimens import PAYLOAD, PLACE, SPECIMENS

EXECUTION = execution_ids(1)[0]
SOURCE = source_of(EXECUTION)


def test_there_is_a_specimen_of_every_event_with_every_field_set() -> None:
    assert [type(event) for event in SPECIMENS] == list(EVENT_CLASSES)
    for event in SPECIMENS:
        assert isinstance(event, msgspec.Struct)
        written = msgspec.to_builtins(event)
        assert set(written) == set(event.__struct_fields__), event.TYPE


@pytest.mark.parametrize("event", SPECIMENS, ids=lambda event: event.TYPE)
def test_an_event_comes_back_equal(event: Event) -> None:
    draft = History(EXECUTION).draft(event, **PLACE)

    (row,) = stored([draft], SOURCE)
    opened = open_stored(row)

    assert opened.event == event
    assert type(opened.event) is type(event)
    assert opened.envelope.event_type == event.TYPE
    assert opened.envelope.schema_name == f"noetl.{event.TYPE}"
    assert opened.envelope.schema_version == event.VERSION
    assert opened.envelope.event_time == draft.event_time


@pytest.mark.parametrize("event", SPECIMENS, ids=lambda event: event.TYPE)
def test_bytes_at_rest_are_canonical(event: Event) -> None:
    (sealed,) = seal([History(EXECUTION).draft(event, **PLACE)], EMPTY_STREAM, SOURCE)

    assert canonical_json.encode(msgspec.json.decode(sealed.canonical)) == sealed.canonical
    assert canonical_json.sha256_hex(sealed.canonical) == sealed.checksum


def test_the_whole_envelope_comes_back() -> None:
    source = msgspec.structs.replace(
        SOURCE, catalog_id="77", parent_execution_id=EXECUTION, correlation_id="request-1"
    )
    draft = History(EXECUTION).draft(
        BusinessObjectChanged(object="order", id="42"),
        **PLACE,
        event_type="order.paid",
        causation_id=EventId("5"),
        parent_event_id=EventId("6"),
        idempotency_key="default/default/key",
        payload_ref=PAYLOAD,
        meta={"trace": ["ü", 1]},
        annotations={"locality": {"zone": "a"}, "worker_locator": "w"},
    )

    (row,) = stored([draft], source, StreamHead(8, EventId("4")))
    opened = open_stored(row)

    assert msgspec.structs.asdict(opened.envelope) | {"body": None} == {
        "event_id": draft.event_id,
        "event_type": "order.paid",
        "schema_name": "noetl.object.changed",
        "schema_version": 1,
        "tenant_id": "default",
        "organization_id": "default",
        "execution_id": EXECUTION,
        "stream_id": f"execution/{EXECUTION}",
        "stream_version": 9,
        "prev_event_id": "4",
        "aggregate_type": "business_object",
        "aggregate_id": "order/42",
        "event_time": draft.event_time,
        "producer": source.producer,
        "causation_id": "5",
        "correlation_id": "request-1",
        "idempotency_key": "default/default/key",
        "payload_ref": PAYLOAD,
        **PLACE,
        "catalog_id": "77",
        "parent_event_id": "6",
        "parent_execution_id": EXECUTION,
        "meta": {"trace": ["ü", 1]},
        "body": None,
    }
    assert opened.annotations == draft.annotations


def test_events_of_one_seal_form_a_chain_after_the_head() -> None:
    history = History(EXECUTION)
    drafts = [history.draft(event, **PLACE) for event in SPECIMENS[:3]]

    sealed = seal(drafts, StreamHead(4, EventId("99")), SOURCE)

    assert [each.envelope.stream_version for each in sealed] == [5, 6, 7]
    assert [each.envelope.prev_event_id for each in sealed] == [
        "99", drafts[0].event_id, drafts[1].event_id,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("event_type", "aggregate"),
    [
        ("playbook.initialized", ("execution", EXECUTION)),
        ("step.enter", ("execution", EXECUTION)),
        ("call.done", ("execution", EXECUTION)),
        ("worker.capacity", ("execution", EXECUTION)),
        ("command.claimed", ("command", "c1")),
        ("stage.closed", ("stage", "s1")),
        ("frame.failed", ("frame", "f1")),
        ("loop.done", ("loop", "größe/β@2")),
        ("loop.shard.done", ("loop", "größe/β@2")),
        ("object.changed", ("business_object", "order/42")),
        ("objects.recorded", ("execution", EXECUTION)),
    ],
)
def test_an_event_names_the_thing_it_is_about(event_type: str, aggregate: tuple[str, str]) -> None:
    event = next(each for each in SPECIMENS if each.TYPE == event_type)
    (sealed,) = seal([History(EXECUTION).draft(event, **PLACE)], EMPTY_STREAM, SOURCE)
    assert (sealed.envelope.aggregate_type, sealed.envelope.aggregate_id) == aggregate


def test_objects_whose_names_hold_slashes_are_told_apart() -> None:
    history = History(EXECUTION)
    one = history.draft(BusinessObjectChanged(object="a/b", id="c"))
    other = history.draft(BusinessObjectChanged(object="a", id="b/c"))

    sealed = seal([one, other], EMPTY_STREAM, SOURCE)

    assert [each.envelope.aggregate_id for each in sealed] == ["a%2Fb/c", "a/b/c"]
