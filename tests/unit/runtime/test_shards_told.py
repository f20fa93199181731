"""What others make of the log of a fan-out: the ledger of effects, and the index of results."""

from noetl.domain.events import FrameAbandoned, FrameDispatched, ShardDone, ShardEnqueued
from noetl.domain.events import ShardFailed as Failed
from noetl.domain.events.values import Failure, Result
from noetl.kernel.ids import WorkerId
from noetl.runtime.effect_entries import EffectEntry
from noetl.runtime.effects import Ledger
from noetl.runtime.result_index import results_of
from noetl.testing.given import Placed, Story, given
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    FAILURE,
    LATER,
    LOOP,
    SOON,
    STARTED,
    fanout_started,
    in_frame,
    loop_started,
    shard,
    stage_opened,
)

FIRED: dict[str, object] = {"effects": {"fired": 1}}
ADOPTED: dict[str, object] = {"effects": {"fired": 0, "adopted": 1}}


def begun() -> Story:
    return given(STARTED, loop_started(mode="fanout"), fanout_started(2), stage_opened())


def held(attempt: int = 1, shard_attempt: int = 1, worker: WorkerId = ANNA) -> Placed:
    event = ShardEnqueued(
        loop_id=LOOP,
        shard_id="1",
        iter_index=1,
        worker_id=worker,
        lease_until=SOON,
        attempt=attempt,
        shard_attempt=shard_attempt,
    )
    return in_frame(event, shard(1))


def failed(metrics: dict[str, object], error: Failure = FAILURE, *, final: bool = False) -> Placed:
    event = Failed(loop_id=LOOP, shard_id="1", error=error, final=final, metrics=metrics)
    return in_frame(event, shard(1))


def done(metrics: dict[str, object], result: Result | None = None) -> Placed:
    return in_frame(ShardDone(loop_id=LOOP, shard_id="1", metrics=metrics, result=result), shard(1))


def taken_over() -> tuple[Placed, Placed]:
    again = FrameDispatched(ordinal=1, worker_id=BERT, lease_until=LATER, attempt=2)
    lost = FrameAbandoned(previous_owner=ANNA, previous_attempts=1)
    return in_frame(lost, shard(1)), in_frame(again, shard(1))


def entries(story: Story) -> list[EffectEntry]:
    ledger = Ledger()
    for event in story.events:
        ledger.add(event)
    return ledger.entries()


def test_a_try_tells_what_it_fired_and_the_next_what_it_adopted() -> None:
    story = begun().when(held(), failed(FIRED), held(2, 2, BERT), done(ADOPTED))

    fired, adopted = entries(story)

    assert (fired.state, fired.adopted) == ("fired", False)
    assert (adopted.state, adopted.adopted) == ("fired", True)
    assert fired.cycle == f"{story.execution}/load/1/1"


def test_a_holder_that_was_lost_leaves_a_doubt_until_the_shard_is_done() -> None:
    story = begun().when(held(), *taken_over())
    assert [entry.state for entry in entries(story)] == ["in_doubt"]

    story.when(done(FIRED))
    assert [entry.state for entry in entries(story)] == ["fired"]


def test_a_shard_that_was_given_up_stays_in_doubt() -> None:
    lost = Failure(kind="lease_lost", message="gone")
    story = begun().when(held(), failed({}, lost, final=True))

    assert [entry.state for entry in entries(story)] == ["in_doubt"]


def test_the_result_of_a_shard_is_named_by_its_holder() -> None:
    result = Result(status="ok", context={"value": 1})
    story = begun().when(held(), failed({}), held(2, 2, BERT), done({}, result))

    (entry,) = results_of(story.events)

    assert (entry.kind, entry.frame, entry.row_count, entry.tier) == ("frame", 1, 1, "inline")
    (first,) = results_of(begun().when(held(), done({}, result)).events)
    assert first.uri != entry.uri
