"""Shards are handed out, taken over, tried again and given up, each in a way of its own."""

import msgspec
import pytest

from noetl.domain.events.values import Failure
from noetl.domain.work import FrameReport, FrameWork
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.reports import FRAME_ATTEMPTS_MAX
from noetl.testing.desk_words import beat, count, ended, said_to, types, worker
from tests.unit.runtime.desk_scene import LEASE_SECONDS, WORKER, Scene

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: shards, path: tests/shards}
workload: {count: 3}
workflow:
  - step: each
    loop:
      in: "{{ range(count) | list }}"
      spec: {mode: fanout, max_in_flight: 2, fanout: {max_shard_retries: 1}}
    tool: {kind: noop}
    next: {arcs: [{step: after, when: "{{ fanin.status == 'complete' }}"}]}
  - {step: after, tool: {kind: noop}}
"""
REFUSED = Failure(kind="http", message="not now")
OTHER = worker("other")


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def claim(scene: Scene) -> FrameWork:
    work = await scene.claim_one()
    assert isinstance(work, FrameWork)
    return work


def failed(work: FrameWork) -> FrameReport:
    report = ended(work, WORKER)
    assert isinstance(report, FrameReport)
    outcomes = tuple(
        msgspec.structs.replace(each, status="failed", error=REFUSED) for each in report.outcomes
    )
    return msgspec.structs.replace(report, failed_rows=1, row_error=REFUSED, outcomes=outcomes)


async def test_shards_are_enqueued_window_by_window(scene: Scene) -> None:
    execution = await scene.start(TEXT)

    first, second = await scene.claim(10)
    assert count(await scene.events(execution), "loop.shard.enqueued") == 2
    await scene.finish(first, "a")
    third = await claim(scene)
    await scene.finish(second, "b")
    await scene.finish(third, "c")

    events = await scene.events(execution)
    assert count(events, "loop.shard.enqueued") == count(events, "loop.shard.done") == 3
    assert count(events, "loop.fanin.completed") == 1
    assert not [each for each in types(events) if each.startswith("frame.")]
    assert [work.step for work in await scene.claim()] == ["after"]


async def test_a_shard_that_failed_is_tried_again_alone_and_under_its_names(scene: Scene) -> None:
    execution = await scene.start(TEXT, count=1)
    first = await claim(scene)

    await scene.report(failed(first))
    second = await claim(scene)

    assert (second.frame_id, second.shard_attempt) == (first.frame_id, 2)
    assert second.attempt == first.attempt + 1
    once, again = await scene.of(execution, "loop.shard.enqueued")
    assert (once.loop_id, once.shard_id, once.iter_key) == (
        again.loop_id,
        again.shard_id,
        again.iter_key,
    )
    assert (once.shard_attempt, again.shard_attempt) == (1, 2)
    await scene.report(failed(second))
    finals = [each.final for each in await scene.of(execution, "loop.shard.failed")]
    assert finals == [False, True]
    assert [each.status for each in await scene.of(execution, "loop.fanin.completed")] == ["failed"]


async def test_a_lost_holder_is_no_try(scene: Scene) -> None:
    execution = await scene.start(TEXT, count=1)
    first = await claim(scene)

    await scene.pass_time(2 * LEASE_SECONDS)
    second = await claim(scene)

    assert (second.frame_id, second.shard_attempt) == (first.frame_id, 1)
    assert second.attempt == first.attempt + 1
    assert await said_to(scene.report(ended(first, WORKER))) == "lost"
    assert count(await scene.events(execution), "loop.shard.enqueued") == 1
    await scene.finish(second, "a")
    (done,) = await scene.of(execution, "loop.shard.done")
    assert done.shard_attempt == 1


async def test_a_shard_that_nobody_keeps_alive_fails_at_last(scene: Scene) -> None:
    execution = await scene.start(TEXT, count=1)
    for _ in range(FRAME_ATTEMPTS_MAX):
        await claim(scene)
        await scene.pass_time(2 * LEASE_SECONDS)

    assert await scene.claim() == []
    (end,) = await scene.of(execution, "loop.shard.failed")
    assert (end.final, end.error.kind) == (True, "lease_lost")
    assert await scene.status(execution) == "FAILED"


async def test_a_shard_that_has_ended_is_never_handed_out_again(scene: Scene) -> None:
    execution = await scene.start(TEXT)
    first, second = await scene.claim(2)
    await scene.finish(first, "a")

    scene.rebuild()
    await scene.coordinator.load(execution)
    await scene.pass_time(3 * LEASE_SECONDS)
    works = await scene.claim(10, OTHER)

    indexes = sorted(work.first_index for work in works if isinstance(work, FrameWork))
    assert indexes == [1, 2]
    for work in works:
        await scene.finish(work, "b", OTHER)
    assert isinstance(second, FrameWork)
    assert await said_to(scene.report(ended(second, WORKER))) == "lost"
    done = [each.shard_id for each in await scene.of(execution, "loop.shard.done")]
    assert sorted(done) == ["0", "1", "2"]


async def test_a_shard_waiting_for_its_next_try_survives_a_restart(scene: Scene) -> None:
    execution = await scene.start(TEXT, count=1)
    first = await claim(scene)
    scene.coordinator.seats.remove(WORKER)
    await scene.report(failed(first))
    assert count(await scene.events(execution), "loop.shard.enqueued") == 1

    scene.rebuild()
    await scene.coordinator.load(execution)
    scene.coordinator.poke(execution)
    (again,) = await scene.claim(1, OTHER)

    assert isinstance(again, FrameWork)
    assert (again.frame_id, again.shard_attempt) == (first.frame_id, 2)


async def test_a_heartbeat_keeps_a_shard(scene: Scene) -> None:
    execution = await scene.start(TEXT, count=1)
    work = await claim(scene)
    for _ in range(4):
        await scene.pass_time(0.5 * LEASE_SECONDS)
        await scene.desk.heartbeat(beat(work, WORKER))

    await scene.finish(work, "a")

    assert count(await scene.events(execution), "frame.abandoned") == 0
    assert count(await scene.events(execution), "loop.shard.done") == 1


async def test_a_cancelled_fan_out_is_taken_up_where_it_was(scene: Scene) -> None:
    execution = await scene.start(TEXT)
    first, second = await scene.claim(2)
    await scene.finish(first, "a")
    assert isinstance(second, FrameWork)
    await scene.report(failed(second))
    await scene.cancel(execution)
    scene.brought.clear()

    await scene.control.retry(DEFAULT_SCOPE, execution)
    works = await scene.claim(10)

    assert sorted(work.first_index for work in works if isinstance(work, FrameWork)) == [1, 2]
    (again,) = [work for work in works if isinstance(work, FrameWork) and work.first_index == 1]
    assert again.after == (second.frame_id, f"{second.frame_id}.2"), "its journals still hold"
    for work in works:
        await scene.finish(work, "b")
    assert await scene.run_to_the_end(execution) == "COMPLETED"
    done = [each.shard_id for each in await scene.of(execution, "loop.shard.done")]
    assert sorted(done) == ["0", "1", "2"]
