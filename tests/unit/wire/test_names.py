"""What stores index, and numbers and times inside events, are the same everywhere or refused."""

from typing import Any

import msgspec
import pytest

from noetl.domain.events import (
    BusinessObjectChanged,
    CallDone,
    CommandClaimed,
    Event,
    LoopStarted,
    StepEntered,
)
from noetl.domain.events.values import Result
from noetl.domain.log import EMPTY_STREAM
from noetl.kernel.errors import EventTooLarge, FieldInvalid
from noetl.kernel.ids import LoopId, StepName, WorkerId
from noetl.kernel.instant import Instant
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import seal

(EXECUTION,) = execution_ids(1)
STEP = StepName("load")
ENTERED = StepEntered(step=STEP)


def refused(event: Event, **envelope: Any) -> str:
    draft = History(EXECUTION).draft(event, **envelope)
    with pytest.raises(FieldInvalid) as raised:
        seal([draft], EMPTY_STREAM, source_of(EXECUTION))
    return str(raised.value)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 601])
@pytest.mark.parametrize("field", ["idempotency_key", "command_id", "stage_id", "frame_id"])
def test_a_name_in_the_envelope_must_fit_every_index(field: str, name: str) -> None:
    assert field in refused(ENTERED, **{field: name})


@pytest.mark.parametrize(
    "event",
    [
        BusinessObjectChanged(object="order", id="a\0"),
        BusinessObjectChanged(object="order", id="x" * 10_000),
        LoopStarted(loop_id=LoopId("x" * 9_000), step=STEP, mode="parallel"),
        LoopStarted(loop_id=LoopId(""), step=STEP, mode="parallel"),
    ],
)
def test_a_name_in_the_body_must_fit_too(event: Event) -> None:
    assert "aggregate_id" in refused(event)


def test_numbers_have_64_bits() -> None:
    done = CallDone(step=STEP, result=Result(status="ok"), duration_ms=10**400)
    assert "<=" in refused(done)


@pytest.mark.parametrize("time", ["tomorrow", "2026-01-01T00:00:00", "2026-01-01T00:00:00+00:00"])
def test_a_lease_ends_at_an_instant(time: str) -> None:
    claimed = CommandClaimed(worker_id=WorkerId("w"), claim=1, lease_until=Instant(time))
    assert "lease_until" in refused(claimed, command_id="c1")


@pytest.mark.parametrize("name", ["locality", "worker_locator"])
def test_what_depends_on_the_machine_stays_out_of_meta(name: str) -> None:
    assert "annotations" in refused(ENTERED, meta={name: "here"})


def test_a_producer_has_a_name() -> None:
    nameless = msgspec.structs.replace(source_of(EXECUTION), producer="")
    with pytest.raises(FieldInvalid, match="producer"):
        seal([History(EXECUTION).draft(ENTERED)], EMPTY_STREAM, nameless)


def test_annotations_are_small() -> None:
    draft = History(EXECUTION).draft(ENTERED, annotations={"locality": "x" * 10_000})
    with pytest.raises(EventTooLarge, match="annotations"):
        seal([draft], EMPTY_STREAM, source_of(EXECUTION))
