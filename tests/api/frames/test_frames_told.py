"""What the log and refusals tell of frames of other workers: who has them, where, since when."""

from typing import Any

from noetl.bootstrap.settings import Settings
from noetl.domain.events.envelope import RecordedEvent
from noetl.kernel.ids import ExecutionId
from noetl.wire.codec import open_stored
from tests.api.frames.foreign import FANOUT, Foreign, frames_of, stage_of, start
from tests.api.running import Api, running_api

PLACE = {"region": "eu", "zone": "eu-a", "node": "n1"}
HERE = {"source_locality": {"region": "eu", "zone": "eu-b"}}


async def recorded(api: Api, execution: str, event_type: str) -> list[RecordedEvent]:
    page = await api.engine.platform.log.read(ExecutionId(execution))
    found = [open_stored(stored) for stored in page]
    return [each for each in found if each.envelope.event_type == event_type]


async def told(api: Api, execution: str, event_type: str) -> list[Any]:
    return [each.event for each in await recorded(api, execution, event_type)]


def essence(frame: dict[str, Any]) -> list[Any]:
    names = ("frame_id", "attempt", "lease_until", "cursor", "claimed_event_id", "owner_worker")
    return [*(frame[name] for name in names), frame["work"]["rows"], frame["work"]["facts"]]


async def test_a_frame_starts_when_its_holder_says_so(api: Api, anna: Foreign) -> None:
    execution = await start(api)
    stage = await stage_of(api, execution)
    first, second = await anna.claim(stage, requested_count=2)
    assert [first["status"], second["status"]] == ["CLAIMED", "CLAIMED"]
    assert await told(api, execution, "frame.started") == []

    for _ in range(3):
        assert (await anna.beat(first, lease_seconds=30)).status == 200

    (started,) = await recorded(api, execution, "frame.started")
    (event,) = await told(api, execution, "frame.started")
    assert (started.envelope.frame_id, event.worker_id) == (first["frame_id"], "anna")
    shown = [row["status"] for row in await frames_of(api, execution)]
    assert shown == ["RUNNING", "CLAIMED"]
    assert (await anna.square(second)).status == 200
    assert len(await told(api, execution, "frame.started")) == 2


async def test_a_frame_that_is_taken_back_tells_of_both_holders(
    api: Api, anna: Foreign, bert: Foreign
) -> None:
    execution = await start(api, lease=1, count=2)
    stage = await stage_of(api, execution)
    (lost,) = await anna.claim(stage)
    (taken,) = await bert.claim(stage, wait_seconds=20, lease_seconds=60)
    late = await anna.square(lost)

    assert late.body["owner"] == {
        "owner_worker": "bert",
        "attempt": "2",
        "lease_until": taken["lease_until"],
    }
    (gone,) = await told(api, execution, "frame.abandoned")
    assert (gone.previous_owner, gone.previous_attempts, gone.attempts_max) == ("anna", 1, 3)
    assert (gone.reclaimer, gone.prior_lease_until) == ("@reaper", lost["lease_until"])
    _, again = await told(api, execution, "frame.dispatched")
    assert (again.worker_id, again.attempt, again.attempts_max) == ("bert", 2, 3)
    assert (again.previous_owner, again.previous_attempts) == ("anna", 1)
    assert again.prior_lease_until == lost["lease_until"]
    assert (again.retry_mode, again.row_split_retry) == ("whole_frame", False)


async def test_a_frame_that_failed_says_how_far_it_came(api: Api, anna: Foreign) -> None:
    execution = await start(api, count=2)
    (frame,) = await anna.claim(await stage_of(api, execution))
    error = {"kind": "schema", "message": "no such column"}
    await anna.commit(frame, status="FAILED", error=error, row_count=1, events_emitted=4)

    (failed,) = await told(api, execution, "frame.failed")

    assert (failed.cursor, failed.row_count) == ({"first": 0, "rows": 2}, 1)
    assert (failed.events_emitted, failed.attempts, failed.attempts_max) == (4, 1, 3)
    assert (failed.retry_mode, failed.row_split_retry) == ("whole_frame", False)


async def test_where_a_worker_is_stands_beside_what_it_was_given(api: Api, anna: Foreign) -> None:
    execution = await start(api)
    stage = await stage_of(api, execution)
    near = {**PLACE, "max_distance": "region"}
    (frame,) = await anna.claim(stage, locality=near, cursor=HERE, command_id="caller/1")
    far = await anna.claim(
        stage, locality={**PLACE, "max_distance": "zone"}, cursor=HERE, wait_seconds=0.1
    )

    assert far == [], "its rows are in another zone"
    (given,) = await recorded(api, execution, "frame.dispatched")
    assert given.annotations == {
        "locality": PLACE,
        "worker_locator": (
            "noetl://tenant/default/org/default/region/eu/zone/eu-a/node/n1/worker/anna"
        ),
    }
    assert given.envelope.meta == {
        **HERE,
        "placement": {
            "distance": "region",
            "max_distance": "region",
            "within_max_distance": True,
        },
    }
    assert given.envelope.command_id == "caller/1"
    (row,) = await frames_of(api, execution)
    assert (row["frame_id"], row["command_id"]) == (frame["frame_id"], "caller/1")


async def test_rows_wanted_from_elsewhere_do_not_move_the_worker(api: Api, anna: Foreign) -> None:
    execution = await start(api)
    stage = await stage_of(api, execution)
    wants = {**PLACE, "prefer_zone": "eu-b", "max_distance": "zone"}
    assert len(await anna.claim(stage, locality=wants, cursor=HERE)) == 1

    (given,) = await recorded(api, execution, "frame.dispatched")
    assert given.annotations["locality"] == PLACE
    assert given.envelope.meta["placement"] == {
        "distance": "zone",
        "max_distance": "zone",
        "within_max_distance": True,
        "measured_from": {**PLACE, "zone": "eu-b"},
    }


async def test_a_place_with_an_unknown_word_is_refused(api: Api, anna: Foreign) -> None:
    stage = await stage_of(api, await start(api))
    for wrong in ({"max_distance": "moon"}, {"planet": "earth"}):
        assert (await anna.ask(stage, locality=wrong)).body["code"] == "body_invalid"


async def test_after_a_restart_who_asks_again_gets_the_same_frames(settings: Settings) -> None:
    place = {"worker_slot_id": "s1", "frame_index": 0}
    for text in (None, FANOUT):
        async with running_api(settings, has_worker=False) as api:
            execution = await (start(api) if text is None else start(api, text))
            stage = await stage_of(api, execution)
            given = await Foreign(api, "anna").claim(stage, requested_count=2, cursor=place)
            assert len(given) == 2
        async with running_api(settings, has_worker=False) as api:
            anna = Foreign(api, "anna")
            again = await anna.claim(stage, requested_count=2, cursor=place)
            assert [essence(frame) for frame in again] == [essence(frame) for frame in given]
            for frame in again:
                values = [{"value": row} for row in frame["work"]["rows"]]
                assert (await anna.commit(frame, outcomes=values)).status == 200
            if text is None:  # else its stage is over
                over = await anna.ask(stage, cursor=place)
                assert over.body["code"] == "frame_already_terminal"
