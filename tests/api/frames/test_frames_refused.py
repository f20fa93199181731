"""What a worker by frames is refused: what it lost, what is over, what makes no sense."""

import asyncio
from typing import Any

import pytest

from noetl.kernel.ids import ExecutionId, StageId
from noetl.kernel.instant import plus
from noetl.kernel.stage_token import StageGrant, stage_token
from tests.api.frames.foreign import Foreign, events_of, stage_of, start
from tests.api.running import Api


async def test_a_late_commit_is_refused_while_another_holds_the_frame_and_after_its_end(
    api: Api, anna: Foreign, bert: Foreign
) -> None:
    execution = await start(api, lease=1, count=2)
    stage = await stage_of(api, execution)
    (lost,) = await anna.claim(stage)

    (taken,) = await bert.claim(stage, wait_seconds=20)
    assert (taken["frame_id"], taken["attempt"]) == (lost["frame_id"], 2)
    await bert.beat(taken, lease_seconds=60)
    late = await anna.square(lost)
    assert (late.status, late.body["code"]) == (409, "frame_owner_mismatch")
    assert (await anna.beat(lost)).body["code"] == "frame_owner_mismatch"

    assert (await bert.square(taken)).body["ok"] is True
    late = await anna.square(lost)
    (committed,) = await events_of(api, execution, "frame.committed")
    assert (late.status, late.body["code"]) == (409, "frame_already_terminal")
    assert late.body["terminal_event_id"] == committed["event_id"]
    assert "ended with event" in late.body["detail"]
    assert len(await events_of(api, execution, "frame.abandoned")) == 1
    assert (await api.ended(execution))["result"]["results"] == [0, 1]


async def test_of_two_processes_by_one_name_the_one_before_says_nothing_for_the_other(
    api: Api, anna: Foreign
) -> None:
    execution = await start(api, lease=1, count=2)
    stage = await stage_of(api, execution)
    (lost,) = await anna.claim(stage)
    (taken,) = await anna.claim(stage, wait_seconds=20, lease_seconds=60)
    assert (taken["frame_id"], taken["attempt"]) == (lost["frame_id"], 2)

    for answer in (await anna.square(lost, attempt=None), await anna.beat(lost, attempt=None)):
        assert (answer.status, answer.body["code"]) == (409, "frame_owner_mismatch")
        assert "say `attempt`" in answer.body["detail"]
    assert "is at attempt 2, not 1" in (await anna.square(lost)).body["detail"]
    assert (await anna.square(taken)).body["ok"] is True


async def test_a_frame_that_went_out_once_needs_no_attempt(api: Api, anna: Foreign) -> None:
    (frame,) = await anna.claim(await stage_of(api, await start(api)))
    assert (await anna.beat(frame, attempt=None)).status == 200
    assert (await anna.square(frame, attempt=None)).status == 200


async def test_a_frame_ends_once(api: Api, anna: Foreign) -> None:
    execution = await start(api)
    (frame,) = await anna.claim(await stage_of(api, execution))
    assert (await anna.square(frame)).status == 200

    for answer in (
        await anna.square(frame),
        await anna.commit(frame, status="FAILED"),
        await anna.beat(frame),
    ):
        assert (answer.status, answer.body["code"]) == (409, "frame_already_terminal")
    (committed,) = await events_of(api, execution, "frame.committed")
    assert answer.body["terminal_event_id"] == committed["event_id"]


async def test_who_asks_again_gets_the_same_frame(api: Api, anna: Foreign, bert: Foreign) -> None:
    execution = await start(api)
    stage = await stage_of(api, execution)
    place = {"worker_slot_id": "s1", "frame_index": 0}

    answers = await asyncio.gather(*(anna.claim(stage, cursor=place) for _ in range(5)))

    assert len({frame["frame_id"] for frames in answers for frame in frames}) == 1
    assert len(await events_of(api, execution, "frame.dispatched")) == 1
    (other,) = await bert.claim(stage, cursor=place)
    assert other["frame_id"] != answers[0][0]["frame_id"]
    await anna.square(answers[0][0])
    assert (await anna.ask(stage, cursor=place)).body["code"] == "frame_already_terminal"
    (later,) = await anna.claim(stage, cursor={**place, "frame_index": 1})
    assert later["cursor"] == {"first": 4, "rows": 2}


async def test_an_output_that_only_memory_holds_is_refused(api: Api, anna: Foreign) -> None:
    (frame,) = await anna.claim(await stage_of(api, await start(api)))
    hint = {"shm_name": "noetl-1", "boot_id": "b"}

    for output in ({"ipc": hint}, {"rows_ref": {"ipc": hint}}, {"ipc": hint, "rows_ref": {}}, {}):
        answer = await anna.commit(frame, row_count=2, output_ref=output)
        assert (answer.status, answer.body["code"]) == (422, "output_not_durable")
    missing = {"uri": "noetl://default/default/results/1/each/0/0/1@1", "ipc": hint}
    answer = await anna.commit(frame, row_count=2, output_ref=missing)

    assert (answer.status, answer.body["code"]) == (404, "payload_missing")
    assert (await anna.square(frame)).status == 200  # it still holds the frame


async def test_an_output_in_the_store_is_the_frame_s(api: Api, anna: Foreign) -> None:
    execution = await start(api, count=4)
    stage = await stage_of(api, execution)
    large, small = await anna.claim(stage, requested_count=2)
    rows = [{"value": "x" * 5_000}, {"value": 1}]
    await anna.commit(large, outcomes=rows)
    (frame, _) = (await api.get(f"/api/executions/{execution}/frames"))["frames"]

    answer = await anna.commit(small, output_ref={**frame["rows_ref"], "ipc": {}})
    assert (answer.status, answer.body["code"]) == (422, "request_invalid")
    assert "from index 2 on" in answer.body["detail"]
    await anna.square(small)

    assert (await api.ended(execution))["result"]["results"] == ["x" * 5_000, 1, 4, 9]


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ({"row_count": 3}, "request_invalid", "the frame has 2 rows, and 3 are told"),
        ({"row_count": 0}, "request_invalid", "at least"),
        ({"row_count": 1, "outcomes": [{}, {}]}, "request_invalid", "row_count is 1, and 2 rows"),
        ({"status": "DONE"}, "body_invalid", "status"),
        ({"rows": []}, "body_invalid", "rows"),
        ({"row_count": -1}, "body_invalid", "row_count"),
        ({"error": {"kind": "x", "message": "y"}}, "request_invalid", "has no error"),
    ],
)
async def test_a_commit_that_makes_no_sense_changes_nothing(
    api: Api, anna: Foreign, body: dict[str, Any], code: str, says: str
) -> None:
    execution = await start(api)
    (frame,) = await anna.claim(await stage_of(api, execution))

    answer = await anna.commit(frame, **body)

    assert (answer.status, answer.body["code"]) == (422, code)
    assert says in answer.body["detail"]
    assert not await events_of(api, execution, "frame.committed")


async def test_stages_and_frames_that_are_not_there(api: Api, anna: Foreign) -> None:
    execution = await start(api, count=1)
    stage = await stage_of(api, execution)
    assert (await anna.ask("123")).body["code"] == "stage_not_found"
    assert (await anna.ask("123")).status == 404
    missing = await anna.beat({"frame_id": "123"})
    assert (missing.status, missing.body["code"]) == (404, "frame_not_found")
    (frame,) = await anna.claim(stage)
    assert await anna.claim(stage, wait_seconds=0.1) == []
    await anna.commit(frame)
    await api.ended(execution)

    over = await anna.ask(stage)
    while over.status == 404:  # read models follow the log at a little distance
        over = await anna.ask(stage)

    assert (over.status, over.body["code"]) == (410, "stage_over")


async def test_a_paused_execution_hands_out_nothing_and_says_wait(api: Api, anna: Foreign) -> None:
    execution = await start(api)
    stage = await stage_of(api, execution)
    (frame,) = await anna.claim(stage)
    await api.post(f"/api/executions/{execution}/pause")

    assert (await anna.beat(frame)).body["next_action"] == "wait"
    assert (await anna.ask(stage, wait_seconds=0)).status == 410
    assert (await anna.square(frame)).body == {"ok": True, "next_action": "wait"}


async def test_only_workers_and_slots_of_the_stage_may_speak_of_frames(
    api: Api, anna: Foreign
) -> None:
    execution = await start(api)
    stage = await stage_of(api, execution)
    (frame,) = await anna.claim(stage)
    until = plus(api.engine.clock.now(), seconds=60)
    own, other = (
        StageGrant(execution_id=ExecutionId(execution), stage_id=StageId(name), expires_at=until)
        for name in (stage, "7")
    )
    path = f"/api/frames/{frame['frame_id']}/heartbeat"

    async def beat(headers: dict[str, str]) -> int:
        body = {"worker_id": "anna"}
        return (await api.call("POST", path, json=body, headers=headers)).status

    assert await beat({}) == 401
    assert await beat({"Authorization": f"Bearer {stage_token(api.internal_key, own)}"}) == 200
    assert await beat({"Authorization": f"Bearer {stage_token(api.internal_key, other)}"}) == 403
