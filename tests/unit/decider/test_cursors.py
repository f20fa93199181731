"""How loops over a cursor claim, when they are drained, and what they come to."""

import pytest

from noetl.decider import requests
from noetl.decider.frames import frames_at_once, row_concurrency
from noetl.domain.events.values import Failure
from noetl.domain.execution.windows import open_frames
from tests.unit.decider.cursor_story import CursorStory

TWO_SLOTS = ", max_in_flight: 2, frame: {max_rows: 5}"


def test_a_cursor_opens_a_stage_without_knowing_its_rows() -> None:
    told = CursorStory()
    (started,) = told.of("loop.started")
    assert (started.mode, started.collection_size, started.collection) == ("cursor", None, None)
    policy = told.of("stage.opened")[0].frame_policy
    assert (policy["max_rows"], policy["row_concurrency"], policy["process"]) == (1, 1, "row")


def test_slots_of_a_cursor_are_frames_and_rows_at_once_are_apart_from_them() -> None:
    told = CursorStory(", max_in_flight: 4, frame: {max_rows: 50, row_concurrency: 16}")
    assert (frames_at_once(told.work), row_concurrency(told.work)) == (4, 16)


def test_a_claim_that_finds_nothing_ends_the_loop() -> None:
    told = CursorStory()
    told.come_back_empty(told.dispatch())
    (done,) = told.of("loop.done")
    assert (done.status, done.stats.total) == ("completed", 0)
    assert told.open == ["after"]


def test_claims_go_on_until_one_finds_nothing() -> None:
    told = CursorStory(TWO_SLOTS)
    for rows in (["a", "b"], ["c"]):
        frame = told.dispatch()
        told.start(frame, rows)
        told.commit_rows(frame, rows)
    assert not told.of("loop.done")
    told.come_back_empty(told.dispatch())
    (done,) = told.of("loop.done")
    assert done.result.context["loop"]["results"] == ["a", "b", "c"]
    assert (done.stats.total, done.stats.succeeded, done.stats.skipped) == (3, 3, 0)


def test_while_another_frame_may_leave_work_an_empty_claim_ends_nothing_and_nobody_polls() -> None:
    told = CursorStory(TWO_SLOTS)
    busy = told.dispatch()
    told.start(busy, ["a"])
    told.come_back_empty(told.dispatch())
    assert not told.may_claim
    assert not told.of("loop.done")

    told.commit_rows(busy, ["a"])  # what its row left behind is claimed next

    assert told.may_claim
    page = told.dispatch()
    told.start(page, ["a, page 2"])
    told.commit_rows(page, ["a2"])
    told.come_back_empty(told.dispatch())
    assert told.of("loop.done")[0].stats.total == 2


def test_an_empty_claim_that_began_before_the_last_commit_proves_nothing() -> None:
    told = CursorStory(TWO_SLOTS)
    busy, early = told.dispatch(), told.dispatch()
    told.start(busy, ["a"])
    told.commit_rows(busy, ["a"])
    told.come_back_empty(early)
    assert not told.of("loop.done")
    told.come_back_empty(told.dispatch())
    assert told.of("loop.done")


def test_two_claims_side_by_side_that_find_nothing_end_the_loop_once() -> None:
    told = CursorStory(TWO_SLOTS)
    first, second = told.dispatch(), told.dispatch()
    told.come_back_empty(first)
    assert not told.of("loop.done")
    told.come_back_empty(second)
    assert len(told.of("loop.done")) == 1


def test_after_an_empty_claim_one_frame_looks_for_all_of_them() -> None:
    told = CursorStory(", max_in_flight: 4")
    busy = [told.dispatch() for _ in range(4)]
    for frame in busy:
        told.start(frame, ["a"])
    for frame in busy:
        told.commit_rows(frame, ["a"])
        empty = told.dispatch()
        assert not told.may_claim
        told.come_back_empty(empty)
    assert told.of("loop.done")
    assert len([event for event in told.of("frame.committed") if event.row_count == 0]) == 4


def test_claims_of_frames_that_may_come_again_are_not_over() -> None:
    told = CursorStory(", max_in_flight: 4")
    done, lost, out = (told.dispatch() for _ in range(3))
    told.start(done, ["a"])
    told.start(lost, ["b"])
    assert open_frames(told.work) == (done, lost, out)
    told.commit_rows(done, ["a"])
    told.fail_frame(lost)  # a retry would take its rows up
    assert open_frames(told.work) == (out, lost)


def test_whoever_looks_and_finds_something_calls_the_others_in_again() -> None:
    told = CursorStory(", max_in_flight: 3")
    busy = told.dispatch()
    told.start(busy, ["a"])
    told.come_back_empty(told.dispatch())
    told.commit_rows(busy, ["a"])
    page = told.dispatch()
    assert not told.may_claim
    told.start(page, ["a, page 2"])
    assert told.dispatch() != told.dispatch()
    assert not told.may_claim, "three are out"


def test_a_claim_that_was_undone_leaves_its_rows_to_later_claims() -> None:
    told = CursorStory(TWO_SLOTS)
    undone = told.dispatch()
    told.start(undone, ["a"])
    told.come_back_empty(told.dispatch())
    told.lose(undone)
    told.dispatch_again(undone)
    told.come_back_empty(undone)
    assert not told.of("loop.done")
    again = told.dispatch()
    told.start(again, ["a"])
    told.commit_rows(again, ["a"])
    told.come_back_empty(told.dispatch())
    (done,) = told.of("loop.done")
    assert (done.stats.total, done.stats.succeeded) == (1, 1)


def test_a_frame_that_is_handed_out_again_begins_its_claim_anew() -> None:
    told = CursorStory(TWO_SLOTS)
    lost, busy = told.dispatch(), told.dispatch()
    told.start(busy, ["a"])
    told.commit_rows(busy, ["a"])
    told.lose(lost)
    told.dispatch_again(lost)
    told.come_back_empty(lost)
    assert told.of("loop.done")


def test_a_frame_that_is_handed_out_again_keeps_the_rows_that_are_recorded() -> None:
    told = CursorStory(TWO_SLOTS)
    lost = told.dispatch()
    told.start(lost, [{"id": 1}, {"id": 2}])
    told.lose(lost)
    told.dispatch_again(lost)
    claimed = told.work.cursor.claimed[lost]
    assert (claimed.rows, claimed.transaction) == ([{"id": 1}, {"id": 2}], f"transaction of {lost}")
    assert told.work.out[lost].rows == 2


def test_rows_have_numbers_of_their_own_by_claim_and_results_stand_in_order_of_commits() -> None:
    told = CursorStory(TWO_SLOTS)
    slow, quick = told.dispatch(), told.dispatch()
    told.start(slow, ["s1", "s2"])
    told.start(quick, ["q1"])
    assert [told.work.out[frame].first for frame in (slow, quick)] == [0, 2]
    told.commit_rows(quick, ["q1"], writes={"last": "quick", "both": 1})
    told.commit_rows(slow, ["s1", "s2"], writes={"last": "slow"})
    told.come_back_empty(told.dispatch())
    (done,) = told.of("loop.done")
    assert done.result.context["loop"]["results"] == ["q1", "s1", "s2"]
    assert told.state.ctx["last"] == "slow"
    assert told.state.ctx["both"] == 1


def test_a_failed_row_makes_the_loop_partial_which_is_success() -> None:
    told = CursorStory(TWO_SLOTS)
    frame = told.dispatch()
    told.start(frame, ["a", "b"])
    error = Failure(kind="timeout", message="slow")
    told.commit_rows(frame, ["a", None], failed_rows=1, row_error=error)
    assert told.may_claim
    told.come_back_empty(told.dispatch())
    (done,) = told.of("loop.done")
    assert (done.status, done.error, done.stats.failed) == ("partial", None, 1)
    assert told.open == ["after"]


SLOW = Failure(kind="timeout", message="slow")


@pytest.mark.parametrize("policy", ["failure: fail_fast", "failure: {mode: fail_fast}"])
def test_of_a_cursor_that_is_to_fail_fast_the_first_failed_row_fails_the_step(policy: str) -> None:
    told = CursorStory(TWO_SLOTS, policy=policy)
    frame, other = told.dispatch(), told.dispatch()
    told.start(frame, ["a", "b"])
    told.start(other, ["c"])
    told.commit_rows(frame, ["a", None], failed_rows=1, row_error=SLOW)
    assert not told.may_claim
    assert not told.of("loop.done")
    told.commit_rows(other, ["c"])  # what was claimed is worked on to its end
    (done,) = told.of("loop.done")
    assert (done.status, done.error, done.stats.succeeded) == ("failed", SLOW, 2)
    assert told.of("step.exit")[0].status == "FAILED"


def test_a_retry_of_a_cursor_that_failed_fast_claims_on() -> None:
    told = CursorStory(TWO_SLOTS, policy="failure: fail_fast")
    frame = told.dispatch()
    told.start(frame, ["a", "b"])
    told.commit_rows(frame, ["a", None], failed_rows=1, row_error=SLOW)
    told.tell(*requests.retry(told.state, told.plan.playbook, None, None))
    again = told.dispatch()
    told.start(again, ["c"])
    told.commit_rows(again, ["c"])
    told.come_back_empty(told.dispatch())
    done = told.of("loop.done")[-1]
    assert (done.status, done.error, done.stats.failed) == ("partial", None, 1)


def test_a_loop_of_which_every_row_failed_has_failed() -> None:
    told = CursorStory(TWO_SLOTS)
    for rows in (["a", "b"], ["c"]):
        frame = told.dispatch()
        told.start(frame, rows)
        told.commit_rows(frame, [None] * len(rows), failed_rows=len(rows), row_error=SLOW)
        assert told.may_claim
    told.come_back_empty(told.dispatch())
    (done,) = told.of("loop.done")
    assert (done.status, done.error, done.stats.failed) == ("failed", SLOW, 3)


def test_an_author_may_want_to_go_on_even_if_every_row_failed() -> None:
    told = CursorStory(TWO_SLOTS, policy="failure: continue")
    frame = told.dispatch()
    told.start(frame, ["a"])
    told.commit_rows(frame, [None], failed_rows=1, row_error=SLOW)
    told.come_back_empty(told.dispatch())
    (done,) = told.of("loop.done")
    assert (done.status, done.error) == ("partial", None)
    assert told.open == ["after"]


def test_a_frame_that_fails_for_good_fails_the_loop_once_the_others_are_back() -> None:
    told = CursorStory(TWO_SLOTS)
    busy, broken = told.dispatch(), told.dispatch()
    told.start(busy, ["a"])
    told.fail_frame(broken)
    assert not told.may_claim
    told.commit_rows(busy, ["a"])
    (done,) = told.of("loop.done")
    assert (done.status, done.error.kind, done.stats.succeeded) == ("failed", "connection", 1)


@pytest.mark.parametrize("bound", ["2", "'{{ workload.frames - 1 }}'"])
def test_max_iterations_bounds_the_frames_and_the_loop_says_that_it_was_cut(bound: str) -> None:
    told = CursorStory(TWO_SLOTS, f", options: {{max_iterations: {bound}}}")
    for _ in range(2):
        frame = told.dispatch()
        told.start(frame, ["a"])
        told.commit_rows(frame, ["a"])
    (done,) = told.of("loop.done")
    assert (done.status, done.error, done.stats.total) == ("partial", None, 2)
