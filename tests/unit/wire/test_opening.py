"""A row of the log opens only when its bytes are whole, its own, and of a version we read."""

from typing import Any

import msgspec
import pytest

from noetl.domain.events import BusinessObjectChanged, CallDone, StepEntered, UnknownEvent
from noetl.domain.log import StoredEvent
from noetl.kernel.errors import EventCorrupt, EventUnreadable
from noetl.kernel.ids import StepName
from noetl.testing.given import stored
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import open_stored
from tests.unit.specimens import RESULT
from tests.unit.wire.rows import rewritten, with_bytes

FIRST, SECOND = execution_ids(2)
STEP = StepName("load")
ENDLESS = b"[" * 100_000 + b"]" * 100_000


def row(event: Any = None, **envelope: Any) -> StoredEvent:
    draft = History(FIRST).draft(event or StepEntered(step=STEP, visit=2), **envelope)
    return stored([draft], source_of(FIRST))[0]


def refusal(damaged: StoredEvent, *, verify: bool = True) -> EventUnreadable:
    with pytest.raises(EventUnreadable) as refused:
        open_stored(damaged, verify=verify)
    return refused.value


def test_every_flipped_byte_is_noticed() -> None:
    whole = row()
    for at in range(len(whole.canonical)):
        flipped = bytearray(whole.canonical)
        flipped[at] ^= 1
        with pytest.raises(EventCorrupt):
            open_stored(msgspec.structs.replace(whole, canonical=bytes(flipped)))


def test_corruption_says_which_event_and_what_it_hashes_to() -> None:
    whole = row()
    damaged = msgspec.structs.replace(whole, canonical=whole.canonical[:-1])
    with pytest.raises(EventCorrupt) as refused:
        open_stored(damaged)
    assert refused.value.event == f"{FIRST}@1"
    assert refused.value.recorded == whole.checksum
    assert refused.value.actual != whole.checksum


def test_a_wrong_checksum_is_corruption_even_when_the_bytes_are_whole() -> None:
    with pytest.raises(EventCorrupt):
        open_stored(msgspec.structs.replace(row(), checksum="00" * 32))


def test_who_has_verified_already_may_skip_it() -> None:
    unchecked = msgspec.structs.replace(row(), checksum="00" * 32)
    assert open_stored(unchecked, verify=False).event == StepEntered(step=STEP, visit=2)


@pytest.mark.parametrize("length", [0, 1, 40, -1])
def test_truncated_bytes_are_unreadable(length: int) -> None:
    whole = row()
    error = refusal(with_bytes(whole, whole.canonical[:length]))
    assert error.event == f"{FIRST}@1"


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole.replace(b'"load"', b'"lo\xffd"'),
        lambda whole: whole.replace(b'"default"', b'"def\xffult"', 1),
        lambda whole: whole.replace(b'{"step":"load","visit":2}', b'"load"'),
        lambda whole: whole.replace(b'"visit":2', b'"visit":"2"'),
        lambda whole: whole.replace(b'"step":"load",', b""),
        lambda whole: whole.replace(b'"stream_version":1', b'"stream_version":"1"'),
        lambda whole: whole.replace(b'"visit":2', b'"visit":2,"x":' + ENDLESS),
        lambda _: b"null",
        lambda _: b"not json",
    ],
    ids=[
        "text in the body is not UTF-8", "text in the envelope is not UTF-8",
        "the body is no object", "a field has the wrong type", "a field is missing",
        "the envelope has a wrong type", "nested without end", "no object", "no JSON",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verify", [True, False])
def test_bytes_that_make_no_sense_are_unreadable(damage: Any, verify: bool) -> None:
    whole = row()
    damaged = damage(whole.canonical)
    assert damaged != whole.canonical
    refusal(with_bytes(whole, damaged), verify=verify)


def test_the_bytes_of_another_event_are_refused() -> None:
    history = History(FIRST)
    first, second = stored(
        [history.draft(StepEntered(step=STEP)) for _ in range(2)], source_of(FIRST)
    )
    (foreign,) = stored([History(SECOND).draft(StepEntered(step=STEP))], source_of(SECOND))

    for other in (second, foreign):
        error = refusal(with_bytes(first, other.canonical))
        assert "its bytes are those of another event" in str(error)


def test_annotations_that_make_no_sense_are_unreadable() -> None:
    for annotations in (b"{", b"[]", b'{"locality":"\xff"}'):
        refusal(msgspec.structs.replace(row(), annotations=annotations))


def test_an_event_type_of_a_later_build_is_kept_unknown() -> None:
    body = {"moves": ["spin", {"é": 1.5}]}

    opened = open_stored(rewritten(row(), event_type="robot.danced", body=body))

    assert opened.event == UnknownEvent(body)
    assert opened.envelope.event_type == "robot.danced"


def test_a_field_of_a_later_build_is_left_out() -> None:
    later = rewritten(row(), body={"step": "load", "visit": 2, "mood": "calm"}, shade="blue")
    assert open_stored(later).event == StepEntered(step=STEP, visit=2)


def test_a_later_version_of_a_known_event_is_refused_with_advice() -> None:
    error = refusal(rewritten(row(), schema_version=2))
    assert "noetl.step.enter is at version 2, this build reads 1" in str(error)
    assert "upgrade noetl or register the missing upcaster" in str(error)
    assert error.event == open_stored(row()).envelope.event_id


def test_events_from_before_schemas_had_names_open_by_their_type() -> None:
    legacy = rewritten(row(CallDone(step=STEP, result=RESULT)), schema_name="noetl.event")
    assert open_stored(legacy).event == CallDone(step=STEP, result=RESULT)


@pytest.mark.parametrize("event_type", ["order.paid", "frame.committed", "object.changed"])
def test_the_aggregate_makes_an_event_of_any_name_a_business_object(event_type: str) -> None:
    event = BusinessObjectChanged(object="order", id="42", status="paid")
    opened = open_stored(row(event, event_type=event_type))
    assert opened.event == event
    assert opened.envelope.event_type == event_type
