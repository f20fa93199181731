"""What must not be in the log is refused when it is sealed, each thing by its own name."""

from datetime import UTC, date, datetime
from typing import Any

import msgspec
import pytest

from noetl.domain.events import (
    BusinessObjectChanged,
    CommandStarted,
    Event,
    FrameHeartbeat,
    StageClosed,
    StepEntered,
    StepExited,
    UnknownEvent,
)
from noetl.domain.events.envelope import Source
from noetl.domain.events.values import Result
from noetl.domain.log import EMPTY_STREAM
from noetl.kernel.errors import (
    EventInvalid,
    EventTooLarge,
    FieldInvalid,
    NotFinite,
    ScopeMissing,
    TimeInvalid,
    ValueNotPlain,
)
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import EVENT_BYTES_MAX, seal
from tests.unit.specimens import LEASE, WORKER

EXECUTION = execution_ids(1)[0]
STEP = StepName("load")
ENTERED = StepEntered(step=STEP)


def refusal(event: Any = ENTERED, source: Source | None = None, **envelope: Any) -> EventInvalid:
    draft = History(EXECUTION).draft(ENTERED)
    wrong = msgspec.structs.replace(draft, event=event, **envelope)
    with pytest.raises(EventInvalid) as refused:
        seal([wrong], EMPTY_STREAM, source or source_of(EXECUTION))
    return refused.value


def changed(**attributes: Any) -> BusinessObjectChanged:
    return BusinessObjectChanged(object="order", id="1", attributes=attributes)


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        (Scope("", "default"), "tenant_id"),
        (Scope("default", ""), "organization_id"),
        (Scope(None, "default"), "tenant_id"),  # type: ignore[arg-type] # the mistake under test
        (Scope("default", 7), "organization_id"),  # type: ignore[arg-type]
    ],
)
def test_an_event_without_its_scope_is_refused(scope: Scope, field: str) -> None:
    error = refusal(source=source_of(EXECUTION, scope))
    assert isinstance(error, ScopeMissing)
    assert error.field == field


NOT_SNOWFLAKES: list[Any] = [
    "", "abc", "-1", "1.0", " 1", "007", "\u0663", str(2**63), "9" * 19, "1" * 20, 7, None,
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_SNOWFLAKES)
def test_an_id_that_an_integer_column_would_not_give_back_is_refused(text: Any) -> None:
    of_event = refusal(event_id=text)
    of_execution = refusal(source=source_of(ExecutionId(text)))
    for error in (of_event, of_execution):
        assert isinstance(error, FieldInvalid)
        assert "is not a snowflake id" in str(error)


@pytest.mark.parametrize("text", ["0", "1", str(2**63 - 1)])
def test_an_id_of_63_bits_is_taken(text: str) -> None:
    draft = msgspec.structs.replace(History(EXECUTION).draft(ENTERED), event_id=text)
    (sealed,) = seal([draft], EMPTY_STREAM, source_of(ExecutionId(text)))
    assert (sealed.envelope.execution_id, sealed.envelope.event_id) == (text, text)


@pytest.mark.parametrize(
    ("time", "reason"),
    [
        ("2026-01-01T00:00:00", "has no time zone"),
        ("2026-01-01T00:00:00Z", "is not in canonical form"),
        ("2026-W01-4T00:00:00.000000Z", "is not in canonical form"),
        ("noon", "is not an ISO 8601 time"),
        (datetime(2026, 1, 1, tzinfo=UTC), "is not text"),
        (None, "is not text"),
    ],
)
def test_a_time_in_any_other_form_is_refused(time: Any, reason: str) -> None:
    error = refusal(event_time=time)
    assert isinstance(error, TimeInvalid)
    assert reason in str(error)


NAN = float("nan")


@pytest.mark.parametrize(
    ("error", "path"),
    [
        (lambda: refusal(changed(price=NAN)), "body.attributes.price"),
        (lambda: refusal(changed(a=[1, {"b": float("inf")}])), "body.attributes.a[1].b"),
        (
            lambda: refusal(
                StepExited(step=STEP, status="ok", result=Result(status="ok", context={"n": NAN}))
            ),
            "body.result.context.n",
        ),
        (lambda: refusal(meta={"score": NAN}), "meta.score"),
        (lambda: refusal(annotations={"locality": NAN}), "annotations.locality"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_number_that_is_not_finite_is_refused_with_its_path(error: Any, path: str) -> None:
    refused = error()
    assert isinstance(refused, NotFinite)
    assert refused.path == path


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"d": value}
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ((1, 2), "is a tuple"),
        (b"raw", "is a bytes"),
        (date(2026, 1, 1), "is a date"),
        ({1: "x"}, "keys must be text"),
        ({1, 2}, "is a set"),
        (object(), "is a object"),
        (ENTERED, "is a StepEntered"),
        ("\ud800", "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
        (deep(65), "nested deeper than 64 levels"),
        (deep(400), "nested deeper than 64 levels"),
        (deep(5_000), "nested deeper than 64 levels"),
    ],
    ids=lambda given: given if isinstance(given, str) and "\ud800" not in given else "",
)
def test_a_value_that_would_not_read_back_equal_is_named(value: Any, reason: str) -> None:
    in_body = refusal(changed(x=value))
    in_meta = refusal(meta={"x": value})
    in_annotations = refusal(annotations={"locality": value})

    for error, where in ((in_body, "body"), (in_meta, "meta"), (in_annotations, "annotations")):
        assert isinstance(error, ValueNotPlain)
        assert where in error.path
        assert reason in str(error)


def test_a_wide_value_is_not_taken_for_a_deep_one() -> None:
    draft = History(EXECUTION).draft(changed(rows=[{"a": []} for _ in range(500)]))
    seal([draft], EMPTY_STREAM, source_of(EXECUTION))


@pytest.mark.parametrize(
    ("cls", "fields", "reason"),
    [
        (StepEntered, {"visit": "x"}, "Expected `int`, got `str` - at `$.body.visit`"),
        (StepEntered, {"visit": 2.0}, "Expected `int`, got `float` - at `$.body.visit`"),
        (StepEntered, {"visit": True}, "Expected `int`, got `bool` - at `$.body.visit`"),
        (StepEntered, {"step": None}, "Expected `str`, got `null` - at `$.body.step`"),
        (StepEntered, {"arrived_from": (1,)}, "$.body.arrived_from[0]"),
        (BusinessObjectChanged, {"object": 7, "id": "1"}, "$.body.object"),
        (BusinessObjectChanged, {"object": "o", "id": "1", "attributes": ()}, "$.body.attributes"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_field_of_the_wrong_type_is_named(
    cls: type[Any], fields: dict[str, Any], reason: str
) -> None:
    event = cls(**({"step": STEP} if cls is StepEntered else {}) | fields)
    error = refusal(event)
    assert isinstance(error, FieldInvalid)
    assert error.event_type == cls.TYPE
    assert reason in str(error)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("idempotency_key", 5), ("causation_id", 5), ("command_id", ["c"]), ("meta", None),
        ("payload_ref", {"uri": "x"}), ("idempotency_key", "\ud800"),
    ],
)  # fmt: skip
def test_an_envelope_field_of_the_wrong_type_is_refused(field: str, value: Any) -> None:
    assert isinstance(refusal(**{field: value}), FieldInvalid)


class Stranger(msgspec.Struct):
    TYPE = "step.enter"
    VERSION = 1


@pytest.mark.parametrize("event", [Stranger(), UnknownEvent({}), None, "step.enter"])
def test_an_event_that_is_not_in_the_catalogue_is_refused(event: Any) -> None:
    error = refusal(event)
    assert isinstance(error, FieldInvalid)
    assert f"{type(event).__name__} is not in the catalogue" in str(error)


@pytest.mark.parametrize(
    ("event", "place", "missing"),
    [
        (CommandStarted(worker_id=WORKER, claim=1), {}, "needs command_id"),
        (CommandStarted(worker_id=WORKER, claim=1), {"command_id": ""}, "needs command_id"),
        (StageClosed(status="ok"), {"frame_id": "f1"}, "needs stage_id"),
        (FrameHeartbeat(worker_id=WORKER, lease_until=LEASE), {"stage_id": "s1"}, "needs frame_id"),
        (FrameHeartbeat(worker_id=WORKER, lease_until=LEASE), {"frame_id": "f1"}, "needs stage_id"),
    ],
)
def test_an_event_that_does_not_name_its_subject_is_refused(
    event: Event, place: dict[str, Any], missing: str
) -> None:
    error = refusal(event, **place)
    assert isinstance(error, FieldInvalid)
    assert missing in str(error)


def test_only_a_business_object_may_have_another_name() -> None:
    error = refusal(event_type="step.entered")
    assert isinstance(error, FieldInvalid)
    assert "only events about business objects" in str(error)
    same = msgspec.structs.replace(History(EXECUTION).draft(ENTERED), event_type="step.enter")
    assert seal([same], EMPTY_STREAM, source_of(EXECUTION))


def test_annotations_hold_only_what_the_checksum_may_leave_out() -> None:
    error = refusal(annotations={"locality": {}, "secret": 1})
    assert isinstance(error, FieldInvalid)
    assert "annotations may hold locality and worker_locator, not ['secret']" in str(error)


def test_an_event_may_be_as_large_as_the_limit_and_not_larger() -> None:
    def sized(text_bytes: int) -> int:
        draft = History(EXECUTION).draft(changed(text="x" * text_bytes))
        return len(seal([draft], EMPTY_STREAM, source_of(EXECUTION))[0].canonical)

    room = EVENT_BYTES_MAX - sized(0)
    assert sized(room) == EVENT_BYTES_MAX

    error = refusal(changed(text="x" * (room + 1)))

    assert isinstance(error, EventTooLarge)
    assert (error.size_bytes, error.size_bytes_max) == (EVENT_BYTES_MAX + 1, EVENT_BYTES_MAX)


def test_one_bad_draft_refuses_them_all() -> None:
    history = History(EXECUTION)
    drafts = [history.draft(ENTERED), history.draft(changed(x=b"raw")), history.draft(ENTERED)]
    with pytest.raises(ValueNotPlain):
        seal(drafts, EMPTY_STREAM, source_of(EXECUTION))
