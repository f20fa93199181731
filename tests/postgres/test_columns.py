"""The query columns of every kind of event, without a server."""

import json
from typing import Any

import pytest

from noetl.domain.events import (
    EVENT_CLASSES,
    BusinessObjectChanged,
    CallFailed,
    CheckpointCommitted,
    CommandClaimed,
    CommandFailed,
    CommandIssued,
    Event,
    FaninCompleted,
    LoopDone,
    ShardDone,
    StageClosed,
    StepEntered,
    StepExited,
)
from noetl.domain.events.loop import LoopStats
from noetl.domain.events.values import Failure, Result
from noetl.domain.log import EMPTY_STREAM, SealedEvent
from noetl.kernel.ids import CommandId, EventId, LoopId, StageId, StepName, WorkerId
from noetl.kernel.instant import Instant
from noetl.testing.histories import (
    History,
    begin,
    command_cycle,
    execution_ids,
    loop_of_frames,
    source_of,
)
from noetl.wire.codec import seal
from noetl.wire.columns import UNIQUE_FACTS, QueryColumns, query_columns, unique_fact

(EXECUTION,) = execution_ids(1)
STEP = StepName("load")
COMMAND = CommandId(f"{EXECUTION}/load/orders/2/0/1")
FAILURE = Failure(kind="http", message="503", detail={"n": 1})
LEASE = Instant("2026-01-01T00:00:00.000000Z")
LOOP = LoopId("each@x@3")
STATS = LoopStats(total=1)


def sealed(event: Event, **envelope: Any) -> SealedEvent:
    draft = History(EXECUTION).draft(event, **envelope)
    return seal([draft], EMPTY_STREAM, source_of(EXECUTION))[0]


@pytest.mark.parametrize(
    ("event", "envelope", "name", "status"),
    [
        (StepEntered(step=STEP), {}, "load", None),
        (StepExited(step=STEP, status="skipped"), {}, "load", "skipped"),
        (CommandIssued(step=STEP, tool="http"), {"command_id": COMMAND}, "load", None),
        (
            CommandClaimed(worker_id=WorkerId("w"), claim=1, lease_until=LEASE),
            {"command_id": COMMAND},
            "load/orders",
            None,
        ),
        (CommandFailed(error=FAILURE, claim=1), {"command_id": COMMAND}, "load/orders", "error"),
        (CommandFailed(error=FAILURE, claim=1), {"command_id": CommandId("odd")}, None, "error"),
        (CallFailed(step=STEP, error=FAILURE), {}, "load", "error"),
        (ShardDone(loop_id=LOOP, shard_id="0", result=Result(status="ok")), {}, "each@x", "ok"),
        (StageClosed(status="COMPLETED"), {"stage_id": StageId("7")}, None, "COMPLETED"),
    ],
    ids=lambda value: getattr(value, "TYPE", ""),
)
def test_the_step_and_the_status_come_from_wherever_they_are(
    event: Event, envelope: dict[str, Any], name: str | None, status: str | None
) -> None:
    columns = query_columns(sealed(event, **envelope))
    assert (columns.node_name, columns.status) == (name, status)


def test_what_has_no_column_of_its_own_is_context() -> None:
    event = CallFailed(step=STEP, error=FAILURE, visit=2, task="t", duration_ms=1500)
    assert query_columns(sealed(event, meta={"note": "by hand"})) == QueryColumns(
        node_name="load",
        status="error",
        result=None,
        error="503",
        context=b'{"run":1,"task":"t","tries":1,"visit":2}',
        meta=b'{"note":"by hand"}',
        worker_id=None,
        duration_ms=1500,
    )


@pytest.mark.parametrize(
    ("event", "fact"),
    [
        (CommandIssued(step=STEP, tool="http"), f"command.issued/{COMMAND}"),
        (LoopDone(loop_id=LOOP, step=STEP, status="ok", stats=STATS), f"loop.done/{LOOP}"),
        (
            FaninCompleted(loop_id=LOOP, status="complete", total=1, done=1),
            f"loop.fanin.completed/{LOOP}",
        ),
        (
            CheckpointCommitted(epoch_id="7", last_event_id=EventId("1")),
            "checkpoint.committed/7",
        ),
    ],
    ids=lambda value: getattr(value, "TYPE", ""),
)
def test_the_name_of_a_fact_is_what_its_index_sees(event: Event, fact: str) -> None:
    """A note of the caller's under the same name must not make a fact unique, or twice."""
    decoy = {"command_id": "x", "loop_id": "x", "epoch_id": "x"}
    one = sealed(event, command_id=COMMAND, meta=decoy)
    columns = query_columns(one)
    assert unique_fact(one) == fact
    assert columns.meta is not None
    indexed = json.loads(columns.meta)[UNIQUE_FACTS[event.TYPE]]
    assert f"{event.TYPE}/{indexed}" == fact


def test_a_business_object_is_no_fact_whatever_it_is_called() -> None:
    changed = BusinessObjectChanged(object="order", id="1")
    assert unique_fact(sealed(changed, event_type="loop.done")) is None


def test_a_loop_names_its_epoch() -> None:
    shard = sealed(ShardDone(loop_id=LOOP, shard_id="0"), meta={"epoch_id": "another"})
    columns = query_columns(shard)
    assert columns.meta is not None
    assert json.loads(columns.meta) == {
        "epoch_id": LOOP,
        "loop_id": LOOP,
        "shard_attempt": 1,
        "shard_id": "0",
    }


def test_a_whole_run_has_columns() -> None:
    history = History(EXECUTION)
    drafts = [*begin(history), *command_cycle(history, STEP), *loop_of_frames(history, STEP, 2)]
    for each in seal(drafts, EMPTY_STREAM, source_of(EXECUTION)):
        columns = query_columns(each)
        for text in (columns.context, columns.meta, columns.result):
            assert text is None or isinstance(json.loads(text), dict)
    assert len(EVENT_CLASSES) > 40
