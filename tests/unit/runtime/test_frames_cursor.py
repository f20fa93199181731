"""Frames of a cursor: the claim is open until the log has its rows, and the next holder asks."""

from typing import Any

import msgspec
import pytest

from noetl.domain.work import ClaimedRows, FrameReport, LeaseAnswer
from noetl.kernel.errors import ClaimLost, LogUnavailable
from noetl.kernel.ids import FrameId
from noetl.kernel.snowflake import Parts, compose
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.runtime.frames_cursor import CLAIMS_KEPT_SECONDS
from tests.unit.runtime.cursor_scene import AWAY, WHOLE, WRONG, Calls, Table, scene, unclaimed
from tests.unit.runtime.worker_scene import LEASE_SECONDS, only_frame

RECORDED = ClaimedRows(transaction="earlier", row_count=2, rows=[7, 8])
TAKEN_OVER: dict[str, Any] = {"claimed": RECORDED, "attempt": 2, "first_index": 4, "row_count": 2}


async def test_claimed_rows_are_told_to_the_desk_before_the_claim_is_committed() -> None:
    table = Table(1, 2, 3, 4)
    told = scene(table)
    told.desk.first_index = 20
    async with told.running():
        await told.do(unclaimed())

    (start,) = told.desk.starts
    assert (start.claimed.rows, start.claimed.row_count) == ([1, 2, 3], 3)
    assert table.committed == [start.claimed.transaction]
    report = only_frame(told.desk)
    assert [(row.index, row.value) for row in report.outcomes] == [(20, 2), (21, 4), (22, 6)]
    assert table.pending == [4]


async def test_a_claim_that_finds_nothing_is_a_frame_without_rows() -> None:
    told = scene(Table())
    async with told.running():
        await told.do(unclaimed())

    report = only_frame(told.desk)
    assert (report.row_count, report.error, told.desk.starts) == (0, None, [])


@pytest.mark.parametrize(
    "answer", [ClaimLost("frame f1", "is over"), LeaseAnswer(next_action="stop")]
)
async def test_a_claim_that_the_desk_refuses_is_not_committed(
    answer: ClaimLost | LeaseAnswer,
) -> None:
    table = Table(1, 2)
    told = scene(table)
    if isinstance(answer, ClaimLost):
        told.desk.trouble["frame_started"] = [answer]
    else:
        told.desk.answer = answer
    async with told.running():
        await told.do(unclaimed())

    assert (table.committed, table.pending) == ([], [1, 2])
    assert told.desk.reports == []


async def test_a_desk_that_is_away_is_asked_again_while_the_claim_is_open() -> None:
    table = Table(1)
    told = scene(table)
    told.desk.trouble["frame_started"] = [LogUnavailable("away")]
    async with told.running():
        await told.do(unclaimed())
        assert table.committed == []
        await told.clock.advance(1)

    assert len(table.requests) == len(table.committed) == 1
    assert only_frame(told.desk).row_count == 1


async def test_rows_that_are_too_large_for_an_event_go_through_the_store() -> None:
    rows = [{"id": number, "text": "x" * 2_000} for number in range(3)]
    table = Table(*rows)
    told = scene(table, _ids)
    async with told.running():
        await told.do(unclaimed())

        (start,) = told.desk.starts
        table.fates = ["committed"]
        await told.do(unclaimed(**{**TAKEN_OVER, "claimed": start.claimed, "row_count": 3}))

    assert (start.claimed.rows, start.claimed.row_count) == (None, 3)
    _, report = told.desk.reports
    assert isinstance(report, FrameReport)
    assert [row.value for row in report.outcomes] == [0, 1, 2]


async def test_a_database_that_is_away_for_a_moment_costs_no_attempt() -> None:
    table = Table(1)
    table.trouble = [AWAY, AWAY]
    told = scene(table)
    async with told.running():
        await told.do(unclaimed())
        await told.clock.advance(2)

    assert only_frame(told.desk).row_count == 1
    names = [request.name for request in table.requests]
    assert len(set(names)) == len(names) == 3


async def test_a_database_that_stays_away_fails_the_frame_and_another_holder_may_try() -> None:
    table = Table(1)
    table.trouble = [AWAY] * 5
    told = scene(table)
    async with told.running():
        await told.do(unclaimed())
        await told.clock.advance(10)

    error = only_frame(told.desk).error
    assert error is not None
    assert (error.kind, error.retryable) == ("connection", True)


async def test_a_claim_that_is_wrong_fails_at_once_and_says_why() -> None:
    table = Table(1)
    table.trouble = [WRONG]
    told = scene(table)
    async with told.running():
        await told.do(unclaimed())

    error = only_frame(told.desk).error
    assert error is not None
    assert (error.kind, error.message) == ("schema", "no such table: work")
    assert len(table.requests) == 1


async def test_a_commit_whose_end_is_unknown_is_left_to_the_next_holder() -> None:
    table = Table(1)
    table.trouble_at_commit = [AWAY]
    told = scene(table)
    async with told.running():
        await told.do(unclaimed())

    assert (len(told.desk.starts), len(table.requests)) == (1, 1)
    error = only_frame(told.desk).error
    assert error is not None
    assert error.retryable


async def test_a_next_holder_runs_the_rows_of_a_claim_that_was_committed() -> None:
    table = Table(1)
    table.fates = ["committed"]
    told = scene(table)
    async with told.running():
        await told.do(unclaimed(**TAKEN_OVER))

    report = only_frame(told.desk)
    assert [(row.index, row.value) for row in report.outcomes] == [(4, 14), (5, 16)]
    assert (table.asked, table.requests, told.desk.starts) == (["earlier"], [], [])


async def test_a_next_holder_commits_nothing_of_a_claim_that_was_undone() -> None:
    table = Table(1)
    table.fates = ["aborted"]
    told = scene(table)
    async with told.running():
        await told.do(unclaimed(**TAKEN_OVER))

    report = only_frame(told.desk)
    assert (report.row_count, report.outcomes, report.error) == (0, (), None)
    assert table.requests == []


async def test_rows_of_a_claim_whose_name_may_have_been_dropped_are_worked_on() -> None:
    table = Table(1)
    table.fates = ["aborted"]
    told = scene(table)
    told.clock.seconds = 1_767_225_600.0 + CLAIMS_KEPT_SECONDS  # 2026, and as long as names lie
    old, young = (
        FrameId(compose(Parts(at, 1, 0))) for at in (1_767_225_599_999, 1_767_225_600_001)
    )
    async with told.running():
        for frame_id in (old, young):
            work = msgspec.structs.replace(unclaimed(**TAKEN_OVER), frame_id=frame_id)
            await told.do(work)

    ended = [report for report in told.desk.reports if isinstance(report, FrameReport)]
    assert {report.frame_id: report.row_count for report in ended} == {old: 2, young: 0}


async def test_a_claim_says_which_claims_before_it_are_over() -> None:
    table = Table(1)
    told = scene(table)
    async with told.running():
        await told.do(unclaimed(open_frames=(FrameId("e"), FrameId("f1"))))

    (request,) = table.requests
    assert request.name == "00000000000000000f1/s1/1/1"
    assert request.over is not None
    d, e, f, g = (name.zfill(19) for name in ("d", "e", "f1", "f2"))
    names = [f"{each}/s1/1/1" for each in (d, e, f, g)]
    assert [request.over.has(name) for name in names] == [True, False, False, False]
    assert not request.over.has(f"{d}/s2/1/1"), "nothing is known of other stages"
    assert not request.over.has(f"380663216791293952/{d}/1/1"), "as claims were once named"
    assert not request.over.has(request.name)


async def test_a_next_holder_waits_while_the_claim_is_open() -> None:
    table = Table(1)
    table.fates = ["open", "open", "committed"]
    told = scene(table)
    async with told.running():
        await told.do(unclaimed(**TAKEN_OVER))
        assert told.desk.reports == []
        await told.clock.advance(1)

    assert only_frame(told.desk).row_count == 2


async def test_a_next_holder_does_not_wait_for_longer_than_a_lease() -> None:
    table = Table(1)
    table.fates = ["open"]
    told = scene(table)
    async with told.running():
        await told.do(unclaimed(**TAKEN_OVER))
        for _ in range(10):
            await told.clock.advance(LEASE_SECONDS / 5)

    error = only_frame(told.desk).error
    assert error is not None
    assert (error.kind, error.retryable) == ("timeout", True)


async def test_a_fate_that_cannot_be_asked_for_a_moment_is_asked_for_again() -> None:
    table = Table(1)
    table.trouble, table.fates = [AWAY], ["committed"]
    told = scene(table)
    async with told.running():
        await told.do(unclaimed(**TAKEN_OVER))
        await told.clock.advance(1)

    assert only_frame(told.desk).row_count == 2


async def test_a_whole_frame_sees_all_its_rows_at_once() -> None:
    seen = []

    async def look(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        assert job.frame is not None
        seen.append((job.frame.rows, job.frame.row_count, job.frame.base_index, job.frame.policy))
        return RowResult(status="ok", value=None)

    told = scene(Table(1, 2), look, steps=WHOLE)
    told.desk.first_index = 9
    async with told.running():
        await told.do(unclaimed())

    assert seen == [([1, 2], 2, 9, {"max_rows": 3})]
    assert only_frame(told.desk).row_count == 2


async def test_seconds_and_bytes_do_not_cut_what_a_frame_has_claimed() -> None:
    told = scene(Table(1, 2, 3))
    async with told.running():
        await told.do(unclaimed(seconds_max=0.0, bytes_max=1))

    assert only_frame(told.desk).row_count == 3


async def test_a_frame_that_is_told_to_wait_finishes_what_it_has_claimed() -> None:
    told = scene(Table(1, 2, 3))
    told.desk.answer = LeaseAnswer(next_action="wait")
    async with told.running():
        await told.do(unclaimed())

    assert only_frame(told.desk).row_count == 3


async def test_rows_show_no_secret_that_the_claim_was_made_with() -> None:
    told = scene(Table({"text": "the pass-word-4711 of it"}), _text, Calls("pass-word-4711"))
    async with told.running():
        await told.do(unclaimed())

    assert "4711" not in str(told.desk.starts)
    assert "4711" not in str(only_frame(told.desk))


async def _ids(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
    assert job.iteration is not None
    return RowResult(status="ok", value=job.iteration.item["id"])


async def _text(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
    assert job.iteration is not None
    return RowResult(status="ok", value=job.iteration.item["text"])
