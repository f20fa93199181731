"""Executions over HTTP: started, watched, ended, replayed."""

import asyncio
from typing import Any

from noetl.bootstrap.settings import Settings
from tests.api.running import FAILING, HELLO, WAITING, Api, running_api


async def test_an_execution_runs_to_its_end(api: Api) -> None:
    execution = await api.start(who="Anna")
    shown = await api.ended(execution)

    assert (shown["status"], shown["path"], shown["progress"]) == ("COMPLETED", "tests/hello", 100)
    assert shown["duration_seconds"] >= 0
    assert shown["pagination"]["total_events"] == shown["event_count"] == len(shown["events"])
    assert shown["events"][0]["event_type"] == "playbook.initialized"
    assert shown["events"][-1]["event_type"] == "playbook.completed"
    assert {type(event["event_id"]) for event in shown["events"]} == {str}


async def test_workload_is_another_name_for_payload(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)
    started = await api.post(
        "/api/execute", path="tests/hello", version="latest", workload={"who": "Bert"}, trace=True
    )
    await api.ended(started["execution_id"])
    found = await api.get(f"/api/vars/{started['execution_id']}")

    assert started["status"] == "started"
    assert (found["variables"]["greeted"]["value"], found["count"]) == ("Bert", 1)


async def test_a_variable_says_which_step_wrote_it_and_when(api: Api) -> None:
    execution = await api.start(who="Bert")
    ended = await api.ended(execution)

    found = await api.get(f"/api/vars/{execution}/greeted")
    missing = await api.call("GET", f"/api/vars/{execution}/other")

    assert (found["value"], found["type"], found["source_step"]) == ("Bert", "string", "second")
    assert ended["start_time"] <= found["created_at"] <= ended["end_time"]
    assert missing.status == 404


async def test_a_failure_is_told_where_runners_look_for_it(api: Api) -> None:
    shown = await api.ended(await api.start(FAILING))
    (failed,) = [event for event in shown["events"] if event["event_type"] == "playbook.failed"]

    assert shown["status"] == "FAILED"
    assert shown["error"]
    assert failed["result"]["context"]["error"]["kind"] == shown["error_kind"]
    assert failed["error"] == shown["error"]


async def test_events_come_in_pages_by_type_and_since_an_event(api: Api) -> None:
    execution = await api.start()
    everything = (await api.ended(execution))["events"]
    path = f"/api/executions/{execution}/events"

    page = await api.get(path, page=2, page_size=5)
    done = await api.get(path, event_type="call.done", page_size=1)
    since = await api.get(path, since_event_id=everything[9]["event_id"])
    without = await api.get(f"/api/executions/{execution}", include_events="false")

    assert page["events"] == everything[5:10]
    assert page["pagination"] == {
        "page": 2,
        "page_size": 5,
        "total_events": len(everything),
        "total_pages": -(-len(everything) // 5),
        "has_next": True,
        "has_prev": True,
    }
    assert (done["pagination"]["total_events"], len(done["events"])) == (2, 1)
    assert since["events"] == everything[10:]
    assert (without["events"], without["events_included"]) == ([], False)


async def test_executions_are_listed_newest_first(api: Api) -> None:
    started = [await api.start() for _ in range(3)]
    for execution in started:
        await api.ended(execution)
    newest = started[::-1]

    async def ids(**query: Any) -> list[str]:
        return [each["execution_id"] for each in await api.get("/api/executions", **query)]

    for _ in range(1_000):  # read models follow the log
        if len(await ids(status="completed")) == len(newest):
            break
    assert await ids() == newest
    assert await ids(limit=1, page=2) == newest[1:2]
    assert await ids(limit=2, page=3) == []
    assert await ids(before=newest[0]) == newest[1:]
    assert await ids(status="completed", path="tests/hello") == newest
    assert await ids(status="FAILED") == []


async def test_many_start_at_once_and_each_is_answered(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)
    wanted = [{"path": "tests/hello"}, {"path": "tests/hullo"}, {"path": "tests/hello"}]

    answer = await api.post("/api/execute/batch", executions=wanted)

    assert (answer["count"], answer["started"], answer["failed"]) == (3, 2, 1)
    assert [item["status"] for item in answer["results"]] == ["started", "failed", "started"]
    assert answer["results"][1]["code"] == "entry_not_found"


async def test_a_key_starts_one_execution(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)
    keyed = {"path": "tests/hello", "dedup": {"key": "order 7", "window_secs": 3600}}

    at_once = await asyncio.gather(*(api.post("/api/execute", **keyed) for _ in range(5)))
    batch = await api.post("/api/execute/batch", executions=[keyed, {"path": "tests/hello"}])
    refused = await api.call("POST", "/api/execute", json={**keyed, "dedup": {"key": ""}})

    assert sorted(each["status"] for each in at_once) == ["duplicate"] * 4 + ["started"]
    assert len({each["execution_id"] for each in at_once}) == 1
    assert (batch["started"], batch["duplicates"], batch["failed"]) == (1, 1, 0)
    assert batch["results"][0]["execution_id"] == at_once[0]["execution_id"]
    assert refused.status == 422


async def test_the_idempotency_key_of_a_request_is_the_same_key(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)
    header = {"Idempotency-Key": "order 8"}
    wanted = {"path": "tests/hello"}

    first, again = [
        (await api.call("POST", "/api/execute", json=wanted, headers=header)).body for _ in range(2)
    ]
    by_body = await api.post("/api/execute", path="tests/hello", dedup={"key": "order 8"})

    assert [each["status"] for each in (first, again, by_body)] == [
        "started",
        "duplicate",
        "duplicate",
    ]
    assert {first["execution_id"]} == {again["execution_id"], by_body["execution_id"]}


async def test_a_batch_that_is_sent_again_with_its_key_starts_nothing_again(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)
    header = {"Idempotency-Key": "order 9"}
    own = {"path": "tests/hello", "dedup": {"key": "order 10"}}
    body = {"executions": [{"path": "tests/hello"}, {"path": "tests/hello"}, own]}

    first, again = [
        (await api.call("POST", "/api/execute/batch", json=body, headers=header)).body
        for _ in range(2)
    ]

    assert (first["started"], again["started"], again["duplicates"]) == (3, 0, 3)
    assert len({each["execution_id"] for each in first["results"] + again["results"]}) == 3


async def test_fields_that_clients_of_other_engines_send_are_accepted(api: Api) -> None:
    await api.post("/api/catalog/register", content=HELLO)

    started = await api.post(
        "/api/execute",
        path="tests/hello",
        resource_kind="Playbook",
        execution_pool="shared",
        trace={"sampled": True},
    )

    assert started["status"] == "started"


async def test_a_misspelt_field_and_an_unknown_status_are_named_beside_what_is_known(
    api: Api,
) -> None:
    field = await api.call("POST", "/api/execute", json={"path": "x", "payloud": {}})
    status = await api.call("GET", "/api/executions", params={"status": "nope"})

    told = field.body["detail"]
    assert "`payloud`" in told
    assert "payload" in told.replace("payloud", "")
    assert "'nope'; use PENDING, RUNNING," in status.body["detail"]


async def test_a_key_is_known_after_a_restart(settings: Settings) -> None:
    async with running_api(settings) as api:
        await api.post("/api/catalog/register", content=HELLO)
        first = await api.post("/api/execute", path="tests/hello", dedup={"key": "order 7"})
    async with running_api(settings) as api:
        again = await api.post("/api/execute", path="tests/hello", dedup={"key": "order 7"})

    assert again["execution_id"] == first["execution_id"]
    assert (first["status"], again["status"]) == ("started", "duplicate")


async def test_a_running_execution_is_explained_paused_and_cancelled(api: Api) -> None:
    execution = await api.start(WAITING)
    one = f"/api/executions/{execution}"

    explained = await api.get(f"{one}/explain")
    paused = await api.post(f"{one}/pause", reason="lunch")
    status = await api.get(f"{one}/status")
    resumed = await api.post(f"{one}/resume")
    cancelled = await api.post(f"{one}/cancel", reason="enough")
    again = await api.post(f"{one}/finalize")
    check = await api.get(f"{one}/cancellation-check")

    assert "Step start" in explained["sentences"][0]
    assert (paused["status"], status["status"], resumed["status"]) == (
        "paused",
        "PAUSED",
        "resumed",
    )
    assert (cancelled["status"], cancelled["cancelled_executions"]) == ("cancelled", [execution])
    assert again["status"] == "already_completed"
    assert check == {"execution_id": execution, "cancelled": True, "status": "CANCELLED"}


async def test_a_failed_execution_is_retried(api: Api) -> None:
    execution = await api.start(FAILING)
    before = await api.ended(execution)

    await api.post(f"/api/executions/{execution}/retry", reason="again")
    after = await api.ended(execution)

    assert after["status"] == "FAILED"
    assert after["event_count"] > before["event_count"]


async def test_effects_are_a_ledger(api: Api) -> None:
    execution = await api.start(FAILING)
    await api.ended(execution)

    answer = await api.get(f"/api/executions/{execution}/effects")

    assert [(each["step"], each["state"]) for each in answer["effects"]] == [("start", "fired")]
    assert answer["counts"] == {"fired": 1, "adopted": 0, "repeated": 0, "in_doubt": 0}


async def test_a_fact_about_an_object_is_recorded_and_replayed(api: Api) -> None:
    execution = await api.start()
    await api.ended(execution)

    await api.post("/api/events", execution_id=execution, object="order", id="A-1", status="open")
    await api.post(
        "/api/events",
        execution_id=execution,
        name="object.changed",
        payload={"object": "order", "id": "A-2"},
    )
    state = await api.get("/api/replay/state", execution_id=execution, projection="business_object")

    assert [(each["object"], each["id"]) for each in state["business_objects"]] == [
        ("order", "A-1"),
        ("order", "A-2"),
    ]
    assert "frames" not in state


async def test_a_state_is_replayed_at_any_point(api: Api) -> None:
    execution = await api.start()
    events = (await api.ended(execution))["events"]
    path = "/api/replay/state"

    now = await api.get(path, execution_id=execution, resolve_payloads="true")
    then = await api.get(path, execution_id=execution, as_of_event_id=events[3]["event_id"])
    also = await api.get(path, execution_id=execution, as_of_position=events[3]["position"])
    time = await api.get(path, execution_id=execution, as_of_time="2020-01-01T00:00:00Z")

    assert (now["execution"]["status"], now["event_count"]) == ("COMPLETED", len(events))
    assert now["report"]["checksum"] == now["checksum"]
    assert "summary" in now["payloads"]
    assert (then["event_count"], then["checksum"]) == (4, also["checksum"])
    assert time["event_count"] == 0


async def test_a_server_knows_nothing_of_other_tenants(api: Api) -> None:
    execution = await api.start()
    for other in ({"tenant_id": "acme"}, {"organization_id": "acme"}):
        asked = {"execution_id": execution, **other}
        answer = await api.call("GET", "/api/replay/state", params=asked)
        assert (answer.status, answer.body["code"]) == (404, "execution_not_found")
    mine = {"execution_id": execution, "tenant_id": "default", "organization_id": "default"}
    assert (await api.call("GET", "/api/replay/state", params=mine)).status == 200


async def test_workers_and_numbers_are_shown(api: Api) -> None:
    await api.ended(await api.start())

    workers = await api.get("/api/workers")
    numbers = await api.get("/metrics")

    assert workers["workers"][0]["slots"] == 8
    assert 'noetl_executions_ended_total{status="COMPLETED"} 1.0' in numbers
    assert 'noetl_events_appended_total{type="call.done"} 2.0' in numbers
    assert "noetl_projection_lag_milliseconds" in numbers
    assert 'route="/api/executions/{execution_id}"' in numbers
