"""The fold knows every event of the catalogue and lets none stop it."""

import msgspec
import pytest

from noetl.domain.events import (
    CATALOGUE,
    EVENT_CLASSES,
    BatchAccepted,
    BatchCompleted,
    BatchFailed,
    BatchProcessing,
    CheckpointCommitted,
    Event,
    StepEntered,
    UnknownEvent,
    WorkerCapacity,
)
from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.execution.accumulator import extend
from noetl.domain.execution.fold import FOLDS, fold
from noetl.domain.execution.rows import CHAIN_START, Chain, ReferenceSummary
from noetl.domain.execution.state import ExecutionState
from noetl.domain.surfaces import checksum_bundle, parity
from noetl.kernel import canonical_json
from noetl.testing.given import at, given
from tests.unit.domain.happenings import STARTED, STEP, completed, issued, stored_result
from tests.unit.specimens import PAYLOAD, PLACE, SPECIMENS, specimen

SERVICE_EVENTS = (
    BatchAccepted, BatchProcessing, BatchCompleted, BatchFailed, CheckpointCommitted,
    WorkerCapacity,
)  # fmt: skip


def test_there_is_a_fold_for_every_event_and_for_nothing_else() -> None:
    assert set(FOLDS) == set(EVENT_CLASSES)


def test_no_two_events_have_one_name() -> None:
    assert len(CATALOGUE) == len(EVENT_CLASSES)


@pytest.mark.parametrize("event", SPECIMENS, ids=lambda event: event.TYPE)
def test_any_event_may_be_the_first(event: Event) -> None:
    story = given(at(event, **PLACE))
    story.then(
        "execution",
        execution_id=story.execution,
        tenant_id="default",
        event_count=1,
        last_event_id=story.event_id(1),
        last_event_type=event.TYPE,
        unknown_events=0,
    )


def test_events_of_all_kinds_fold_in_any_of_their_orders() -> None:
    happenings = [at(event, **PLACE) for event in SPECIMENS]
    forwards, backwards = given(*happenings), given(*reversed(happenings))
    assert forwards.state.execution.event_count == len(SPECIMENS)
    assert backwards.state.execution.event_count == len(SPECIMENS)


@pytest.mark.parametrize("cls", SERVICE_EVENTS, ids=lambda cls: cls.TYPE)
def test_what_services_say_of_themselves_is_only_counted(cls: type[Event]) -> None:
    with_it = given(STARTED, specimen(cls)).state
    without = given(STARTED).state

    assert with_it.execution.event_count == 2
    assert with_it.execution.unmatched_events == 0
    for state in (with_it, without):  # what is about the last event differs, nothing else does
        state.stream_version = state.execution.event_count = 0
        state.execution.last_event_id = state.execution.last_event_type = state.now = None
    assert with_it == without


def test_an_event_of_an_unknown_type_is_counted_and_changes_nothing() -> None:
    story = given(STARTED, issued())
    last = story.events[-1]
    strange = RecordedEvent(
        msgspec.structs.replace(last.envelope, event_type="robot.danced", stream_version=3),
        UnknownEvent({"moves": 3}),
        position=3,
        ingest_time=last.ingest_time,
    )
    before = checksum_bundle(story.state)

    state = fold([strange], story.state)

    assert state.execution.unknown_events == 1
    assert state.execution.event_count == 3
    assert state.execution.last_event_type == "robot.danced"
    assert state.stream_version == 3
    assert parity(before, checksum_bundle(state)).differing == ("execution",)


def test_unmatched_events_are_counted_one_by_one() -> None:
    given(completed(), completed(), issued(), issued()).then("execution", unmatched_events=3)


def test_payloads_are_chained_in_the_order_in_which_events_name_them() -> None:
    story = given(
        at(StepEntered(step=STEP), payload_ref=PAYLOAD),
        at(issued().event, command_id="c1", payload_ref=PAYLOAD),
        completed(result=stored_result("rows")),
    )
    from_envelope = ReferenceSummary(
        PAYLOAD.uri, PAYLOAD.sha256, PAYLOAD.schema_digest, PAYLOAD.row_count, PAYLOAD.media_type
    )
    from_result = ReferenceSummary("noetl://rows", "ab" * 32)
    expected = Chain()
    for summary in (from_envelope, from_envelope, from_result):
        extend(expected, canonical_json.encode(summary))
    assert story.state.execution.payload_refs == expected


def test_a_chain_is_what_went_by_and_in_which_order() -> None:
    one, other = Chain(), Chain()
    for link in (b"a", b"b"):
        extend(one, link)
    for link in (b"b", b"a"):
        extend(other, link)
    assert (one.count, other.count) == (2, 2)
    assert one.digest != other.digest
    again = Chain()
    extend(again, b"a")
    assert again.digest == canonical_json.sha256_hex(bytes.fromhex(CHAIN_START) + b"a")


def test_a_state_that_is_passed_in_goes_on() -> None:
    story = given(STARTED, issued(), completed())
    state = fold(story.events[:2])
    assert fold(story.events[2:], state) is state
    assert state == fold(story.events) == story.state


def test_folding_nothing_is_the_beginning() -> None:
    assert fold([]) == ExecutionState()
    assert fold([]) is not fold([])
