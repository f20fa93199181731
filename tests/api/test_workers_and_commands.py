"""Who works here, and what became of a command, over HTTP."""

from typing import Any

from noetl.bootstrap.settings import Settings
from tests.api.running import WAITING, Api, running_api

NEEDS_TOOL = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sql, path: tests/sql}
workflow:
  - step: start
    tool: {kind: sqlite, database: "x.db", query: "select 1"}
"""


async def issued(api: Api, execution: str) -> dict[str, Any]:
    events = (await api.get(f"/api/executions/{execution}/events"))["events"]
    return next(event for event in events if event["event_type"] == "command.issued")


async def test_workers_are_shown_with_their_tools_labels_and_slots(api: Api) -> None:
    told = await api.get("/api/workers")
    (worker,) = told["workers"]

    assert worker["worker_id"] == "local"
    assert worker["status"] == "ready"
    assert (worker["slots"], worker["in_use"], worker["free"]) == (8, 0, 8)
    assert {"python", "http", "noop"} <= set(worker["tools"])
    assert (told["slots"], told["in_use"]) == (8, 0)
    assert await api.get("/api/worker/pools") == told


async def test_a_command_is_found_by_the_event_that_issued_it(api: Api) -> None:
    execution = await api.start(who="Ada")
    await api.ended(execution)
    event = await issued(api, execution)
    query = {"execution_id": execution}
    answer = await api.call("GET", f"/api/commands/{event['event_id']}", params=query)
    while answer.status == 404:  # read models follow the log at a little distance
        answer = await api.call("GET", f"/api/commands/{event['event_id']}", params=query)
    command = answer.body

    assert command["execution_id"] == execution
    assert (command["node_name"], command["action"]) == ("start", "noop")
    assert command["context"]["workload"]["who"] == "Ada"
    assert command["meta"]["attempt"] == 1


async def test_a_command_that_runs_is_found_at_once(api: Api) -> None:
    execution = await api.start(WAITING)
    event = await issued(api, execution)

    command = await api.get(f"/api/commands/{event['event_id']}")

    assert command["status"] in ("PENDING", "CLAIMED", "STARTED", "RUNNING")
    await api.post(f"/api/executions/{execution}/cancel")


async def test_an_event_that_issued_no_command_is_not_found(api: Api) -> None:
    answer = await api.call("GET", "/api/commands/12345")
    assert (answer.status, answer.body["code"]) == (404, "command_not_found")


async def test_explain_names_the_tool_that_no_worker_has(settings: Settings) -> None:
    async with running_api(settings, has_worker=False) as api:
        worker = {"worker_id": "w", "boot_id": "1", "slots": 1, "tools": ["noop"]}
        claim = {"worker": worker, "free_slots": 1}
        execution = await api.start(NEEDS_TOOL)
        answer = await api.call("POST", "/api/work/claim", json=claim, headers=api.as_worker)
        assert answer.body == {}

        explained = await api.get(f"/api/executions/{execution}/explain")

        assert explained["sentences"][0].endswith(": no worker has tool sqlite.")
