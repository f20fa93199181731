"""Rows that go out again after a retry: what ended well is not run, what had begun is doubted."""

from typing import Any

import msgspec
import pytest

from noetl.domain.events.values import Failure, ResultReference
from noetl.domain.work import Call, FrameReport, JournalEntry, RowOutcome
from noetl.kernel import canonical_json
from noetl.kernel.ids import FrameId
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.pipeline.payloads import MEDIA_TYPE, as_reference
from noetl.templates.recorded import inline_result
from tests.unit.runtime.frame_scene import index_of
from tests.unit.runtime.worker_scene import (
    EXECUTION,
    LOOP,
    SCOPE,
    Behaving,
    Scene,
    frame,
    only_frame,
)

BROKE = Failure(kind="timeout", message="it took too long")
SECONDS = 9
OLD, OLDER = FrameId("f0"), FrameId("f-1")
PAID = Call(task="pay", result=inline_result(1), effect="fired")
KEPT = (
    RowOutcome(index=0, status="ok", value="kept", writes={"seen": 0}),
    RowOutcome(index=1, status="failed", error=BROKE),
    RowOutcome(index=2, status="break", value="kept"),
)


async def seen(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
    return RowResult(status="ok", value=dict(job.ctx), adopted=("c",) if job.journal else ())


async def ran(scene: Scene, rows: int = 3, **fields: Any) -> FrameReport:
    async with scene.running():
        await scene.do(frame([0] * rows, **fields))
        for _ in range(SECONDS):
            await scene.clock.advance(1)
        return only_frame(scene.desk)


async def test_rows_that_ended_well_are_not_run_again() -> None:
    pipelines = Behaving(seen)

    report = await ran(Scene(pipelines, steps=LOOP), kept=KEPT, mode="sequential")

    assert [index_of(job) for job in pipelines.jobs] == [1]
    assert [(each.status, each.value) for each in report.outcomes] == [
        ("ok", "kept"),
        ("ok", {"seen": 0}),  # it sees what the row before it had set
        ("break", "kept"),
    ]
    assert (report.row_count, report.failed_rows, report.broken_rows) == (3, 0, 1)


async def test_how_rows_ended_may_lie_in_the_payload_store() -> None:
    scene = Scene(pipelines := Behaving(seen), steps=LOOP)
    stored = await scene.payloads.put(SCOPE, canonical_json.encode(KEPT), MEDIA_TYPE)
    reference: ResultReference = as_reference(stored)

    await ran(scene, kept_ref=reference)

    assert [index_of(job) for job in pipelines.jobs] == [1]


async def test_journals_of_earlier_frames_say_what_was_done_and_what_is_in_doubt() -> None:
    scene = Scene(pipelines := Behaving(seen), steps=LOOP)
    await scene.journal.append(
        EXECUTION, OLDER, [JournalEntry(row=0, rows=1), JournalEntry(row=0, call=PAID)]
    )
    await scene.journal.append(EXECUTION, OLD, [JournalEntry(row=1, rows=1)])

    report = await ran(scene, after=(OLDER, OLD))

    assert [job.has_predecessor for job in pipelines.jobs] == [True, True, False]
    assert [dict(job.journal) for job in pipelines.jobs] == [{("pay", 1): PAID}, {}, {}]
    assert report.adopted == ("c",)


async def test_effects_that_a_report_has_told_of_are_not_told_again() -> None:
    scene = Scene(Behaving(seen), steps=LOOP)
    ended = JournalEntry(row=1, has_ended=True)
    await scene.journal.append(EXECUTION, OLD, [JournalEntry(row=1, call=PAID), ended])

    report = await ran(scene, after=(OLD,), kept=KEPT)

    assert (report.adopted, report.metrics["effects"]["adopted"]) == ((), 0)


@pytest.mark.parametrize("fields", [{"attempt": 2}, {"after": (FrameId("f1"),)}])
async def test_a_row_that_is_over_is_in_doubt_until_somebody_was_told(
    fields: dict[str, Any],
) -> None:
    """Its holder said in the journal that the row had failed, and died before it could report."""
    scene = Scene(pipelines := Behaving(seen), steps=LOOP)
    failed = Call(task="pay", error=BROKE, effect="fired")
    await scene.journal.append(
        EXECUTION,
        FrameId("f1"),
        [
            JournalEntry(row=0, rows=1),
            JournalEntry(row=0, call=failed),
            JournalEntry(row=0, has_ended=True),
        ],
    )

    await ran(scene, **fields)

    assert [job.has_predecessor for job in pipelines.jobs] == [True, False, False]
    assert dict(pipelines.jobs[0].journal) == {("pay", 1): failed}


@pytest.mark.parametrize(
    ("fields", "rows", "is_left"),
    [
        ({}, 3, True),  # a row has failed: a retry will ask what it had done
        ({"failure": "continue"}, 3, True),
        ({"seconds_max": 0.001, "bad": None}, 3, False),  # the others have not begun
        ({"seconds_max": 0.001, "bad": None, "attempt": 2}, 3, True),  # or have they?
        ({"seconds_max": 0.001, "bad": None, "after": (OLD,)}, 3, True),
        ({"bad": None}, 3, False),
    ],
)
async def test_a_journal_stays_while_rows_of_it_may_run_again(
    fields: dict[str, Any], rows: int, is_left: bool
) -> None:
    bad = fields.get("bad", 1)

    async def run(job: Job, journal: Journal, _hold: Hold) -> RowResult:
        await journal.begin(alone=True)
        await scene.clock.sleep(1)
        if index_of(job) == bad:
            return RowResult(status="failed", error=BROKE, calls=(PAID,))
        return RowResult(status="ok", calls=(PAID,))

    scene = Scene(Behaving(run), steps=LOOP)
    await ran(scene, rows, **{name: given for name, given in fields.items() if name != "bad"})

    entries = await scene.journal.read(EXECUTION, FrameId("f1"))
    assert bool(entries) is is_left
    assert [entry.row for entry in entries if entry.has_ended] == ([] if bad is None else [bad])
    if bad is not None:
        assert JournalEntry(row=bad, call=PAID) in entries


async def test_a_child_of_a_retried_row_is_a_child_of_its_own() -> None:
    scene = Scene(pipelines := Behaving(seen), steps=LOOP)
    await ran(scene, 1, visit_attempt=2)
    assert pipelines.jobs[0].visit_attempt == 2


async def test_a_child_of_a_shard_that_is_tried_again_is_a_child_of_its_own() -> None:
    scene = Scene(pipelines := Behaving(seen), steps=LOOP)
    await ran(scene, 1, mode="fanout", shard_attempt=2, attempt=2)
    assert pipelines.jobs[0].visit_attempt > 2


async def test_rows_stop_starting_when_their_values_are_large_enough() -> None:
    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        return RowResult(status="ok", value="x" * 100)

    assert (await ran(Scene(Behaving(run), steps=LOOP), 10, bytes_max=250)).row_count == 3
    assert (await ran(Scene(Behaving(run), steps=LOOP), 10, bytes_max=1)).row_count == 1
    assert (await ran(Scene(Behaving(run), steps=LOOP), 10, bytes_max=10_000)).row_count == 10
    cursor = await ran(Scene(Behaving(run), steps=LOOP), 10, bytes_max=1, mode="cursor")
    assert cursor.row_count == 10  # it has claimed them


async def test_a_frame_beats_as_often_as_its_policy_says() -> None:
    async def run(_job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        await scene.clock.sleep(SECONDS)
        return RowResult(status="ok")

    scene = Scene(Behaving(run), steps=LOOP)
    await ran(scene, 1, heartbeat_seconds=2.0)
    often = len(scene.desk.beats)
    scene = Scene(Behaving(run), steps=LOOP)
    await ran(scene, 1)

    assert often >= 4
    assert len(scene.desk.beats) <= 1  # else a third of its lease is soon enough


def test_what_a_frame_says_of_its_rows_survives_the_wire() -> None:
    work = frame([0], after=(OLD,), kept=KEPT, visit_attempt=2, bytes_max=5, heartbeat_seconds=1.5)
    assert msgspec.json.decode(msgspec.json.encode(work), type=type(work)) == work


async def test_a_shard_that_is_tried_again_adopts_what_its_tries_have_done() -> None:
    """Each try has a journal; that of a try that was reported as failed leaves nothing in doubt."""
    scene = Scene(pipelines := Behaving(seen), steps=LOOP)
    first = JournalEntry(row=0, rows=1), JournalEntry(row=0, call=PAID)
    ended = JournalEntry(row=0, has_ended=True)
    await scene.journal.append(EXECUTION, FrameId("f1"), [*first, ended])

    await ran(scene, rows=1, mode="fanout", attempt=2, shard_attempt=2)

    (job,) = pipelines.jobs
    assert dict(job.journal) == {("pay", 1): PAID}
    assert not job.has_predecessor
