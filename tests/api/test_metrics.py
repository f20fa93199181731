"""The numbers under /metrics are those of what has happened and of what there is."""

import re

import pytest
from prometheus_client import CollectorRegistry

from noetl.api.metrics_counted import Counted
from noetl.bootstrap.settings import Settings
from tests.api.running import FAILING, WAITING, Api, running_api

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\n"
LOOP = f"""{HEAD}metadata: {{name: loop, path: tests/loop}}
workflow:
  - step: each
    loop:
      in: "{{{{ range(10) | list }}}}"
      iterator: row
      spec: {{mode: parallel, frame: {{max_rows: 5}}}}
    tool: {{kind: noop}}
"""
PYTHON = f"""{HEAD}metadata: {{name: code, path: tests/code}}
workflow:
  - {{step: start, tool: {{kind: python, code: "result = 1"}}}}
"""


async def numbers(api: Api) -> dict[str, float]:
    text: str = await api.get("/metrics")
    found = re.findall(r"^(noetl_\S+(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


async def test_executions_commands_and_commits_are_counted(api: Api) -> None:
    await api.ended(await api.start())
    await api.ended(await api.start(FAILING))

    told = await numbers(api)

    assert told["noetl_executions_started_total"] == 2
    assert told['noetl_executions_ended_total{status="COMPLETED"}'] == 1
    assert told['noetl_executions_ended_total{status="FAILED"}'] == 1
    assert told['noetl_commands_total{status="issued"}'] == 3
    assert told['noetl_commands_total{status="completed"}'] == 2
    assert told['noetl_commands_total{status="failed"}'] == 1
    assert told["noetl_command_seconds_count"] == 3
    assert told["noetl_turn_seconds_count"] >= 3
    assert told["noetl_group_commit_seconds_count"] == told["noetl_group_commit_appends_count"] >= 3
    events = sum(
        value for name, value in told.items() if name.startswith("noetl_events_appended_t")
    )
    assert told["noetl_group_commit_events_sum"] == events


async def test_frames_and_rows_are_counted(api: Api) -> None:
    await api.ended(await api.start(LOOP))

    told = await numbers(api)

    assert told['noetl_frames_total{status="dispatched"}'] == 2
    assert told['noetl_frames_total{status="committed"}'] == 2
    assert told['noetl_rows_total{status="ok"}'] == 10
    assert told['noetl_rows_total{status="failed"}'] == 0
    assert told["noetl_frame_rows_sum"] == 10
    assert told["noetl_frame_lease_seconds_count"] == 2


async def test_slots_commands_and_the_python_pool_are_looked_up(api: Api) -> None:
    await api.ended(await api.start(PYTHON))
    waiting = await api.start(WAITING)

    told = await numbers(api)

    assert told["noetl_worker_slots_capacity"] == 8
    assert told["noetl_worker_slots_used"] == 1
    assert told["noetl_worker_slots_free"] == 7
    assert told['noetl_commands_by_status{status="RUNNING"}'] == 1
    assert told['noetl_workers{status="ready"}'] == 1
    assert told["noetl_executions_running"] == 1
    assert told["noetl_python_processes_idle"] == 1
    assert told["noetl_python_processes_busy"] == 0
    await api.post(f"/api/executions/{waiting}/cancel")


async def test_the_lag_of_read_models_is_told_and_goes_away(api: Api) -> None:
    await api.ended(await api.start())
    while (told := await numbers(api))["noetl_projector_lag_events"]:
        assert told["noetl_projector_lag_seconds"] >= 0
    assert told['noetl_projection_lag_ms{shard="0"}'] == 0
    assert told["noetl_projector_events_total"] > 0


async def test_requests_are_counted_by_route_and_status(api: Api) -> None:
    await api.call("GET", "/api/executions/1")
    await api.call("GET", "/nowhere")
    told = await numbers(api)
    route = 'method="GET",route="/api/executions/{execution_id}",status="404"'
    assert told[f"noetl_http_request_seconds_count{{{route}}}"] == 1
    assert told['noetl_http_request_seconds_count{method="GET",route="other",status="404"}'] == 1


async def test_frames_that_wait_are_a_backlog(settings: Settings) -> None:
    async with running_api(settings, has_worker=False) as api:
        await api.start(LOOP)
        told = await numbers(api)
    assert told['noetl_frame_backlog_total{stage_kind="loop",status="PENDING"}'] == 1
    assert told["noetl_executions_starving"] == 1


@pytest.mark.parametrize(
    ("measure", "name"),
    [
        ("command_lease_expired", 'noetl_leases_expired_total{kind="command"}'),
        ("frame_lease_expired", 'noetl_leases_expired_total{kind="frame"}'),
        ("claim_refused", "noetl_claims_refused_total"),
        ("turn_lost", "noetl_turns_lost_total"),
        ("projected_events", "noetl_projector_events_total"),
    ],
)
def test_what_services_tell_is_counted_under_its_name(measure: str, name: str) -> None:
    registry = CollectorRegistry()
    Counted(registry).measured(measure, 2)  # type: ignore[arg-type]  # one of them each
    sample, _, label = name.partition("{")
    labels = dict(re.findall(r'(\w+)="(\w+)"', label))
    assert registry.get_sample_value(sample, labels) == 2
