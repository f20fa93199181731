"""A worker of another make claims frames over HTTP, keeps them and commits them."""

from typing import Any

from noetl.bootstrap.settings import Settings
from tests.api.frames.foreign import FANOUT, LOOP, Foreign, events_of, frames_of, stage_of, start
from tests.api.running import Api, running_api


async def test_a_foreign_worker_works_through_a_stage(api: Api, anna: Foreign) -> None:
    execution = await start(api)
    stage = await stage_of(api, execution)

    frames = await anna.claim(stage, requested_count=2, lease_seconds=30)
    assert [frame["cursor"] for frame in frames] == [
        {"first": 0, "rows": 2},
        {"first": 2, "rows": 2},
    ]
    assert frames[0]["frame_policy"]["max_rows"] == 2
    assert frames[0]["dsl_ref"].endswith("#each")
    assert (frames[0]["owner_worker"], frames[0]["attempt"]) == ("anna", 1)
    assert "parent_frame_id" not in frames[0]
    assert frames[1]["parent_frame_id"] == frames[0]["frame_id"]
    beat = await anna.beat(frames[1], lease_seconds=120, status="RUNNING")
    assert beat.status == 200
    assert beat.body["lease_until"] > frames[1]["lease_until"]
    assert beat.body["next_action"] == "continue"

    done = await anna.square(frames[1], cursor={"page": 2}, events_emitted=3)
    assert done.body == {"ok": True, "next_action": "continue"}
    done = await anna.square(frames[0], requested_count=1)
    (last,) = done.body["frames"]
    done = await anna.square(last)

    assert done.body == {"ok": True, "next_action": "stop"}
    ended = await api.ended(execution)
    assert ended["status"] == "COMPLETED"
    assert ended["result"]["results"] == [0, 1, 4, 9, 16, 25]


async def test_events_tell_of_it_as_of_every_other_worker(api: Api, anna: Foreign) -> None:
    execution = await start(api, count=2)
    (frame,) = await anna.claim(await stage_of(api, execution))
    await anna.square(frame, cursor={"page": 2})
    await api.ended(execution)

    (dispatched,) = await events_of(api, execution, "frame.dispatched")
    (committed,) = await events_of(api, execution, "frame.committed")

    assert dispatched["frame_id"] == committed["frame_id"] == frame["frame_id"]
    assert len(await events_of(api, execution, "frame.started")) == 1
    shown = await api.get(f"/api/executions/{execution}/frames")
    assert shown["frames"][0]["cursor"] == {"page": 2}


async def test_rows_that_failed_and_frames_that_failed(api: Api, anna: Foreign) -> None:
    execution = await start(api, count=4)
    stage = await stage_of(api, execution)
    first, second = await anna.claim(stage, requested_count=2)
    refused = {"kind": "http", "message": "503", "retryable": True}
    again = await anna.commit(second, status="FAILED", error=refused, cursor={"at": 1})
    assert again.body["ok"] is True
    (second,) = await anna.claim(stage)
    assert (second["cursor"], second["attempt"]) == ({"first": 2, "rows": 2}, 2)
    rows = [{"value": 0}, {"status": "failed", "error": {"kind": "http", "message": "404"}}]
    await anna.commit(first, outcomes=rows)
    final = {"kind": "schema", "message": "no such column"}
    await anna.commit(second, status="FAILED", error=final, row_count=1, cursor={"at": 1})

    assert (await api.ended(execution))["status"] == "FAILED"
    shown = {row["ordinal"]: row for row in await frames_of(api, execution)}
    assert (shown[0]["status"], shown[0]["rows_failed"]) == ("COMPLETED", 1)
    assert (shown[1]["status"], shown[1]["error_kind"]) == ("FAILED", "schema")
    assert (shown[1]["cursor"], shown[1]["row_count"], shown[1]["attempts"]) == ({"at": 1}, 1, 2)


async def test_a_prefix_is_committed_and_the_rest_goes_out_again(api: Api, anna: Foreign) -> None:
    execution = await start(api, count=2)
    stage = await stage_of(api, execution)
    (frame,) = await anna.claim(stage)

    await anna.commit(frame, row_count=1)
    (rest,) = await anna.claim(stage)
    await anna.commit(rest)

    assert rest["cursor"] == {"first": 1, "rows": 1}
    assert (await api.ended(execution))["status"] == "COMPLETED"


async def test_shards_of_a_fanout_are_frames_like_others(api: Api, anna: Foreign) -> None:
    execution = await start(api, FANOUT)
    stage = await stage_of(api, execution)

    for frame in await anna.claim(stage, requested_count=5):
        value = frame["work"]["rows"][0].upper()
        assert (await anna.commit(frame, outcomes=[{"value": value}])).status == 200

    assert (await api.ended(execution))["result"]["results"] == ["A", "B"]
    shown = await frames_of(api, execution)
    assert [row.get("parent_frame_id") for row in shown] == [None, shown[0]["frame_id"]]


async def test_others_work_on_the_same_stage(settings: Settings) -> None:
    """A foreign worker that holds one frame for long does not keep the stage from others."""
    async with running_api(settings) as api:
        anna = Foreign(api, "anna")
        slow = LOOP.replace("kind: noop", 'kind: shell, command: "sleep 0.2"')
        execution = await start(api, slow, count=30)
        stage = await stage_of(api, execution)
        frames: list[dict[str, Any]] = []
        while not frames:
            frames = await anna.claim(stage)
        while (await api.get(f"/api/executions/{execution}/stages"))["stages"][0]["row_count"] < 28:
            assert (await anna.beat(frames[0])).status == 200
        await anna.square(frames[0])

        assert (await api.ended(execution))["status"] == "COMPLETED"
        owners = {row["worker_id"] for row in await frames_of(api, execution)}
        assert owners == {"anna", "local"}


async def test_frames_are_shown_page_by_page_and_by_stage(api: Api, anna: Foreign) -> None:
    execution = await start(api)
    stage = await stage_of(api, execution)
    frames = await anna.claim(stage, requested_count=2)
    path = f"/api/executions/{execution}/frames"

    first = await api.get(path, limit=1, stage_id=stage)
    rest = await api.get(path, limit=5, after=first["next_after"], status="claimed")

    shown = [row["frame_id"] for page in (first, rest) for row in page["frames"]]
    assert shown == [frame["frame_id"] for frame in frames]
    assert rest["next_after"] is None
    assert (await api.get(path, stage_id="7"))["frames"] == []
    assert (await api.call("GET", "/api/executions/7/frames")).status == 404
    assert (await api.call("GET", "/api/executions/7/stages")).status == 404
