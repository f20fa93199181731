"""The columns beside an event's bytes say what queries look for, under the names they know."""

import msgspec
import pytest

from noetl.domain.events import Event, ExecutionResumed, StepEntered
from noetl.domain.log import EMPTY_STREAM, SealedEvent
from noetl.kernel.ids import StepName
from noetl.testing.histories import History, execution_ids, source_of
from noetl.wire.codec import seal
from noetl.wire.columns import query_columns, unique_fact
from tests.unit.specimens import FAILURE, PLACE, RESULT, SPECIMENS

EXECUTION = execution_ids(1)[0]


def sealed(event: Event, **envelope: object) -> SealedEvent:
    draft = History(EXECUTION).draft(event, **envelope)
    return seal([draft], EMPTY_STREAM, source_of(EXECUTION))[0]


def of_type(event_type: str) -> SealedEvent:
    return sealed(next(each for each in SPECIMENS if each.TYPE == event_type), **PLACE)


@pytest.mark.parametrize("event", SPECIMENS, ids=lambda event: event.TYPE)
def test_every_event_has_columns(event: Event) -> None:
    columns = query_columns(sealed(event, **PLACE))
    if hasattr(event, "step"):
        assert columns.node_name == event.step
    assert columns.worker_id == getattr(event, "worker_id", None)
    assert msgspec.json.decode(columns.meta or b"{}")["command_id"] == "c1"


def test_a_result_and_an_error_have_columns_of_their_own() -> None:
    columns = query_columns(of_type("step.exit"))
    assert columns.status == "ok"
    assert msgspec.json.decode(columns.result or b"", type=type(RESULT)) == RESULT
    assert columns.error == FAILURE.message
    assert msgspec.json.decode(columns.context or b"") == {
        "arcs": ["end"],
        "handled": True,
        "quiet": True,
        "visit": 2,
        "writes": {"order.paid": True, "total": 0.1},
    }


def test_an_event_with_nothing_to_say_has_empty_columns() -> None:
    columns = query_columns(sealed(ExecutionResumed()))
    assert set(msgspec.structs.astuple(columns)) == {None}


def test_names_that_old_queries_look_for_are_in_meta() -> None:
    started = query_columns(of_type("loop.started"))
    shard = query_columns(of_type("loop.shard.failed"))
    assert msgspec.json.decode(started.meta or b"") == {
        "collection_size": 100, "command_id": "c1", "epoch_id": "größe/β@2", "loop_id": "größe/β@2",
    }  # fmt: skip
    assert msgspec.json.decode(shard.meta or b"")["shard_attempt"] == 2


def test_meta_holds_what_the_writer_and_the_worker_said() -> None:
    columns = query_columns(
        sealed(
            StepEntered(step=StepName("load")),
            meta={"trace": 1},
            annotations={"worker_locator": "w"},
        )
    )
    assert msgspec.json.decode(columns.meta or b"") == {"trace": 1, "worker_locator": "w"}


def test_only_four_kinds_of_facts_exist_once() -> None:
    facts = {event.TYPE: unique_fact(sealed(event, **PLACE)) for event in SPECIMENS}
    assert {name: fact for name, fact in facts.items() if fact is not None} == {
        "command.issued": "command.issued/c1",
        "loop.done": "loop.done/größe/β@2",
        "loop.fanin.completed": "loop.fanin.completed/größe/β@2",
        "checkpoint.committed": "checkpoint.committed/e1",
    }


def test_a_step_entered_twice_is_two_facts() -> None:
    assert unique_fact(sealed(StepEntered(step=StepName("load")))) is None
