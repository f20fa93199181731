"""How fan-outs begin, go out shard by shard, and come together again."""

from typing import Any

import pytest

from noetl.decider.answers import Decided
from noetl.decider.fanout import is_last_try
from noetl.decider.frames import frames_at_once, next_window
from noetl.domain.events import ShardDone, ShardEnqueued, ShardFailed
from noetl.domain.events.values import Failure
from noetl.domain.execution.state import Window
from noetl.kernel.ids import FrameId
from noetl.templates.recorded import inline_result
from noetl.testing.story import WORKER, Story

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: story, path: tests/story}
workload: {items: [10, 20, 30], lanes: 2}
workflow:
  - step: each
    loop:
      in: "{{ workload.items }}"
      iterator: item
      spec: {mode: fanout, max_in_flight: "{{ lanes }}", fanout: {FANOUT}}
    tool: {kind: noop}
    set: {ctx.told: "{{ fanin.status }} of {{ fanin.total }}"}
    next:
      spec: {mode: exclusive}
      arcs:
        - {step: whole, when: "{{ fanin.status == 'complete' }}"}
        - {step: part, when: "{{ fanin.failed > 0 and event.name == 'loop.done' }}"}
        - {step: bad, when: "{{ event.name == 'call.error' and fanin.done < fanin.total }}"}
  - {step: whole, tool: {kind: noop}}
  - {step: part, tool: {kind: noop}}
  - {step: bad, tool: {kind: noop}}
"""
SLOW = Failure(kind="timeout", message="slow")


class Shards(Story):
    def __init__(self, options: str = "max_shard_retries: 0", **payload: Any) -> None:
        super().__init__(TEXT.replace("FANOUT", options), **payload)

    def run(self, *, fails: bool = False, writes: dict[str, Any] | None = None) -> None:
        """The next shard, to its end."""
        work = self.loop("each")
        window = next_window(work)
        assert window is not None
        assert window.rows == 1
        loop, shard = work.loop_id, str(window.first)
        frame = FrameId(f"shard {shard}")
        out = ShardEnqueued(
            loop_id=loop, shard_id=shard, iter_index=window.first, worker_id=WORKER, attempt=1
        )
        end: ShardDone | ShardFailed = ShardDone(
            loop_id=loop, shard_id=shard, result=inline_result(shard), writes=writes or {}
        )
        if fails:
            end = ShardFailed(loop_id=loop, shard_id=shard, error=SLOW, final=True)
        self.tell(
            Decided(event=out, frame_id=frame, loop_id=loop),
            Decided(event=end, frame_id=frame, loop_id=loop),
        )


def types(told: Story) -> list[str]:
    return [event.TYPE for event in told.events]


def test_a_fan_out_says_how_many_shards_there_are_and_opens_a_stage() -> None:
    told = Shards()

    begin = types(told).index("loop.started")
    assert types(told)[begin:] == ["loop.started", "loop.fanout.started", "stage.opened"]
    assert told.of("loop.fanout.started")[0].total_shards == 3
    (stage,) = told.of("stage.opened")
    assert stage.stage_kind == "fanout"
    assert stage.frame_policy["max_shard_retries"] == 0


def test_shards_go_out_one_by_one_within_the_bound() -> None:
    told = Shards()
    work = told.loop("each")

    assert next_window(work) == Window(0, 1)
    assert frames_at_once(work) == 2
    work.out.update({FrameId("a"): Window(0, 1), FrameId("b"): Window(1, 1)})
    assert next_window(work) is None


def test_all_shards_done_are_complete() -> None:
    told = Shards()
    for _ in range(3):
        told.run()

    assert told.open == ["whole"]
    end = types(told).index("loop.fanin.completed")
    assert types(told)[end : end + 4] == [
        "loop.fanin.completed",
        "loop.done",
        "stage.closed",
        "step.exit",
    ]
    loop = told.of("loop.done")[0].result.context["loop"]
    assert loop["results"] == ["0", "1", "2"]
    assert loop["fanin"]["status"] == "complete"
    assert told.state.ctx["told"] == "complete of 3"


def test_some_shards_done_are_a_part_and_a_success() -> None:
    told = Shards()
    told.run()
    told.run(fails=True)
    assert not told.of("loop.fanin.completed")
    told.run()

    assert told.open == ["part"]
    (fanin,) = told.of("loop.fanin.completed")
    assert (fanin.status, fanin.total, fanin.done, fanin.failed) == ("partial", 3, 2, 1)
    assert told.of("loop.done")[0].status == "partial"


def test_a_part_is_a_failure_when_the_author_wants_all() -> None:
    told = Shards("allow_partial: false")
    told.run()
    told.run(fails=True)
    told.run()

    assert told.open == ["bad"]
    (done,) = told.of("loop.done")
    assert (done.status, done.error.kind) == ("failed", "timeout")
    assert done.error.message == "1 of 3 shards failed, the first because of timeout: slow"
    assert told.of("loop.fanin.completed")[0].status == "partial"
    assert told.of("stage.closed")[0].status == "FAILED"


def test_no_shard_done_is_a_failure() -> None:
    told = Shards()
    for _ in range(3):
        told.run(fails=True)

    assert told.open == ["bad"]
    assert told.of("loop.fanin.completed")[0].status == "failed"


def test_after_a_failed_shard_no_other_goes_out_if_the_author_says_so() -> None:
    told = Shards("fail_fast: '{{ lanes == 2 }}'")
    told.run()
    told.run(fails=True)

    assert told.open == ["part"]
    (fanin,) = told.of("loop.fanin.completed")
    assert (fanin.total, fanin.done, fanin.failed) == (3, 1, 1)
    assert told.of("loop.done")[0].stats.skipped == 1


def test_no_shards_are_complete_at_once() -> None:
    told = Shards(items=[])

    assert told.open == ["whole"]
    assert told.of("loop.fanin.completed")[0].status == "complete"


def test_what_shards_write_is_written_in_their_order() -> None:
    told = Shards()
    for number in range(3):
        told.run(writes={"last": number})

    assert told.state.ctx["last"] == 2


def test_keys_are_the_authors_own() -> None:
    told = Shards("iter_key: 'order-{{ iter.item }}'")

    keys = told.loop("each").policy["iter_keys"]
    assert keys == ["order-10", "order-20", "order-30"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("iter_key: 'same'", "`iter_key` gives 'same' for 3 shards"),
        ("iter_key: '{{ \"x\" * 30000 ~ iter.item }}'", "make `iter_key` shorter"),
        ("max_shard_retries: '{{ lanes - 3 }}'", "max_shard_retries is -1"),
    ],
)
def test_a_fan_out_that_cannot_begin_fails_with_its_reason(options: str, words: str) -> None:
    told = Shards(options)

    (done,) = told.of("loop.done")
    assert done.error is not None
    assert words in done.error.message


def test_the_last_try_is_known() -> None:
    work = Shards("max_shard_retries: 1").loop("each")

    assert not is_last_try(work, 1, SLOW)
    assert is_last_try(work, 2, SLOW)
    assert is_last_try(work, 1, Failure(kind="effect_in_doubt", message="it may have fired"))


def test_after_the_end_of_a_fan_out_others_are_not_tried_again() -> None:
    work = Shards("fail_fast: true, max_shard_retries: 5").loop("each")
    assert not is_last_try(work, 1, SLOW)
    work.row_error = SLOW
    assert is_last_try(work, 1, SLOW)
