"""What facts about business objects make true: merging, removing, deleting, coming back."""

from noetl.domain.events import BusinessObjectChanged, BusinessObjectsRecorded
from noetl.testing.given import at, given
from tests.unit.domain.happenings import order, reference, summary
from tests.unit.specimens import PAYLOAD

ORDER = "order/42"


def test_an_object_begins_with_its_first_event() -> None:
    story = given(at(order(status="new", attributes={"total": 9.5}), event_type="order.placed"))
    story.then(
        "business_objects",
        ORDER,
        object="order",
        id="42",
        status="new",
        version=1,
        attributes={"total": 9.5},
        deleted=False,
        first_event_id=story.event_id(1),
        last_event_id=story.event_id(1),
    )
    story.then("execution", last_event_type="order.placed")


def test_attributes_are_merged_and_null_removes_one() -> None:
    story = given(order(attributes={"total": 9.5, "note": "gift", "lines": [1, 2]}))
    story.when(order(attributes={"note": None, "lines": [3], "paid": True}))
    story.then(
        "business_objects",
        ORDER,
        attributes={"total": 9.5, "lines": [3], "paid": True},
        version=2,
        first_event_id=story.event_id(1),
        last_event_id=story.event_id(2),
    )


def test_nested_values_are_replaced_not_merged() -> None:
    story = given(order(attributes={"to": {"city": "Rome", "zip": None}}))
    story.when(order(attributes={"to": {"zip": "00100"}}))
    story.then("business_objects", ORDER, attributes={"to": {"zip": "00100"}})


def test_a_null_for_something_unknown_leaves_nothing_behind() -> None:
    given(order(attributes={"note": None})).then("business_objects", ORDER, attributes={})


def test_values_that_look_empty_are_kept() -> None:
    empty = {"zero": 0, "no": False, "text": "", "list": [], "object": {}}
    given(order(attributes=empty)).then("business_objects", ORDER, attributes=empty)


def test_a_change_without_a_status_leaves_it_as_it_was() -> None:
    story = given(order(status="new")).when(order(attributes={"a": 1}))
    story.then("business_objects", ORDER, status="new")
    story.when(order(status="paid")).then("business_objects", ORDER, status="paid", version=3)


def test_a_deleted_object_is_finished() -> None:
    story = given(order(status="new", attributes={"a": 1})).when(order(deleted=True))
    story.then(
        "business_objects",
        ORDER,
        deleted=True,
        status="new",
        attributes={"a": 1},
        version=2,
        terminal_version=2,
    )
    assert story.state.business_objects == {}


def test_an_object_that_comes_back_starts_anew() -> None:
    story = given(order(status="new", attributes={"a": 1}), order(deleted=True))
    story.when(order(attributes={"b": 2}))
    story.then(
        "business_objects",
        ORDER,
        version=1,
        status=None,
        attributes={"b": 2},
        deleted=False,
        first_event_id=story.event_id(3),
        terminal_version=None,
    )
    assert len(story.finished["business_objects"]) == 1


def test_an_object_may_be_deleted_by_the_first_event_about_it() -> None:
    story = given(order(deleted=True))
    story.then("business_objects", ORDER, deleted=True, version=1)
    assert story.state.business_objects == {}


def test_payloads_of_an_object_are_counted_and_the_last_one_is_named() -> None:
    story = given(order()).when(at(order(), payload_ref=PAYLOAD), at(order(), payload_ref=PAYLOAD))
    story.then(
        "business_objects",
        ORDER,
        payload_refs=2,
        last_payload={
            "ref": PAYLOAD.uri,
            "sha256": PAYLOAD.sha256,
            "schema_digest": PAYLOAD.schema_digest,
            "row_count": 4,
            "media_type": "text/plain",
        },
    )
    assert story.state.execution.payload_refs.count == 2


def test_objects_whose_names_hold_slashes_are_two_objects() -> None:
    story = given(
        BusinessObjectChanged(object="a/b", id="c", status="one"),
        BusinessObjectChanged(object="a", id="b/c", status="two"),
        BusinessObjectChanged(object="a%2Fb", id="c", status="three"),
    )
    statuses = {(row.object, row.id): row.status for row in story.state.business_objects.values()}
    assert statuses == {("a/b", "c"): "one", ("a", "b/c"): "two", ("a%2Fb", "c"): "three"}


def test_the_objects_of_a_frame_are_proved_by_their_dataset() -> None:
    story = given(BusinessObjectsRecorded(objects_ref=reference("objects", 12), count=12))
    assert story.finished["business_objects"] == [
        {
            "objects_ref": summary("objects", 12),
            "count": 12,
            "event_id": story.event_id(1),
            "terminal_version": 1,
        }
    ]
    assert story.state.execution.payload_refs.count == 1
