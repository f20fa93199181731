"""Lineage and results over HTTP, of what really ran."""

from typing import Any

import pytest

from tests.api.running import WAITING, Api

PAGES = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: pages, path: tests/pages}
workflow:
  - step: start
    tool:
      kind: python
      code: 'result = {"rows": [{"n": n, "text": "x" * 200} for n in range(900)]}'
    next: page
  - step: page
    tool:
      - {name: read, kind: shell, command: "echo {{ start.rows | length }}"}
      - {name: count, kind: noop, result: {n: "{{ ctx.n | default(0) + 1 }}"}}
    set: {ctx.n: "{{ output.n }}"}
    next:
      arcs: [{step: page, when: "{{ ctx.n < 3 }}"}, {step: each}]
  - step: each
    loop: {in: "{{ start.rows[:5] }}", iterator: row, spec: {mode: parallel}}
    tool: {kind: noop, result: "{{ row.n }}"}
    next: end
  - step: end
    tool: {kind: noop, result: "{{ each.results | sum }}"}
"""


async def pages(api: Api) -> str:
    execution = await api.start(PAGES)
    ended = await api.ended(execution)
    assert ended["status"] == "COMPLETED", ended["error"]
    return execution


def names(visits: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [(visit["step"], visit["visit"]) for visit in visits]


async def test_the_lineage_of_a_step_leads_back_to_the_start(api: Api) -> None:
    execution = await pages(api)

    trace = await api.get(f"/api/executions/{execution}/trace/end")

    assert names(trace["visits"]) == [
        ("end", 1),
        ("each", 1),
        ("page", 3),
        ("page", 2),
        ("page", 1),
        ("start", 1),
    ]
    assert trace["total"] == 6
    end, each, page, *_, start = trace["visits"]
    assert end["parents"] == [each["result"]["uri"]]
    assert (each["loop"]["rows"], each["loop"]["rows_done"]) == (5, 5)
    assert each["loop"]["frames"] == each["loop"]["frames_committed"] > 0
    assert [task["task"] for task in page["tasks"]] == ["read", "count"]
    assert page["result"]["parent"] == page["tasks"][1]["result"]["uri"]
    assert page["tasks"][1]["result"]["parent"] == page["tasks"][0]["result"]["uri"]
    assert (start["result"]["tier"], start["result"]["row_count"]) == ("feather", 900)


async def test_a_visit_and_a_page_can_be_asked_for(api: Api) -> None:
    execution = await pages(api)
    path = f"/api/executions/{execution}/trace/page"

    second = await api.get(path, visit=2)
    page = await api.get(path, limit=1, after=1)

    assert names(second["visits"]) == [("page", 2), ("page", 1), ("start", 1)]
    assert (names(page["visits"]), page["next_after"]) == ([("page", 2)], 2)


async def test_every_name_of_a_stored_result_leads_to_it(api: Api) -> None:
    execution = await pages(api)

    told = await api.get(f"/api/executions/{execution}/results")

    kinds = [(entry["kind"], entry["step"], entry["tier"]) for entry in told["results"]]
    assert ("step", "start", "feather") in kinds
    assert kinds.count(("task", "page", "part")) == 6
    assert ("loop", "each", "inline") in kinds
    (start,) = [entry for entry in told["results"] if entry["step"] == "start"]
    content = await api.engine.platform.results.content(api.engine.settings.scope, start["uri"])
    assert len(content["value"]["rows"]) == 900


async def test_a_running_execution_has_a_lineage_too(api: Api) -> None:
    execution = await api.start(WAITING)

    trace = await api.get(f"/api/executions/{execution}/trace/start")

    assert [(visit["step"], visit["status"]) for visit in trace["visits"]] == [("start", "RUNNING")]


@pytest.mark.parametrize(("step", "query"), [("nowhere", {}), ("page", {"visit": 9})])
async def test_what_was_not_entered_is_refused(api: Api, step: str, query: dict[str, int]) -> None:
    execution = await pages(api)

    answer = await api.call("GET", f"/api/executions/{execution}/trace/{step}", params=query)

    assert (answer.status, answer.body["code"]) == (422, "request_invalid")


async def test_an_unknown_execution_is_not_found(api: Api) -> None:
    for path in ("trace/start", "results"):
        answer = await api.call("GET", f"/api/executions/1/{path}")
        assert answer.status == 404
