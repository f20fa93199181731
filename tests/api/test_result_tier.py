"""Upkeep of results over HTTP: for ourselves only, a dry run unless it is told otherwise."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.bootstrap.settings import Settings
from noetl.domain.naming.placement import physical_key
from noetl.domain.naming.result_name import ResultName
from noetl.kernel.ids import ExecutionId, StepName
from tests.api.running import Answer, Api, running_api

GC = "/api/internal/result-tier/gc"
VERIFY = "/api/internal/result-tier/verify"
TABLE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: table, path: tests/table}
workflow:
  - step: start
    tool: {kind: python, effects: none, code: "result = [{'n': n} for n in range(40000)]"}
"""


@pytest.fixture
async def api(settings: Settings) -> AsyncIterator[Api]:
    near = msgspec.structs.replace(
        settings, result_memory_mb=0, result_shared_memory_mb=0, result_disk_mb=0
    )
    async with running_api(near) as running:
        yield running


async def asked(api: Api, path: str, **body: Any) -> Answer:
    return await api.call("POST", path, json=body, headers=api.as_worker)


async def finished(api: Api) -> tuple[str, Path]:
    """A run, and the file of its result."""
    execution = await api.start(TABLE)
    assert (await api.ended(execution))["status"] == "COMPLETED"
    folder = Path(api.engine.settings.home) / "payloads" / "noetl"
    (file,) = folder.rglob("*.feather")
    return execution, file


async def orphaned(api: Api, execution: str) -> str:
    settings = api.engine.settings
    gone = ExecutionId(str(int(execution) - (2 * 86_400_000 << 22)))
    tenant, project = settings.scope
    name = ResultName(tenant=tenant, project=project, execution_id=gone, step=StepName("load"))
    key = physical_key(name, settings.placement, "json")
    await api.engine.platform.objects.create(key, b"left over")
    return key


async def test_gc_is_a_dry_run_unless_it_is_told_otherwise(api: Api) -> None:
    execution, file = await finished(api)
    key = await orphaned(api, execution)
    objects = api.engine.platform.objects

    listed = await asked(api, GC)
    assert listed.status == 200, listed
    assert (listed.body["dry_run"], listed.body["live_candidates"]) == (True, 0)
    assert [each["key"] for each in listed.body["candidates"]] == [key]
    assert await objects.head(key) is not None

    deleted = await asked(api, GC, dry_run=False)
    assert (deleted.body["deleted"], deleted.body["live_candidates"]) == (1, 0)
    assert (await objects.head(key), file.exists()) == (None, True)

    metrics = await api.get("/metrics")
    assert 'noetl_result_tier_gc_total{outcome="deleted"} 1.0' in metrics
    assert 'noetl_result_tier_gc_total{outcome="orphan"} 2.0' in metrics
    assert 'noetl_result_tier_gc_total{outcome="live_candidate"} 0.0' in metrics


async def test_gc_says_when_it_cannot_know_what_is_alive(api: Api) -> None:
    await finished(api)
    await api.engine.platform.projections.clear()

    refused = await asked(api, GC, grace_seconds=0)

    assert (refused.status, refused.body["code"]) == (409, "collection_refused")
    assert 'noetl_result_tier_gc_total{outcome="refused"} 1.0' in await api.get("/metrics")


async def test_a_deleted_result_is_found_rebuilt_and_served(api: Api) -> None:
    execution, file = await finished(api)
    before = file.read_bytes()
    file.unlink()

    found = await asked(api, VERIFY, executions=[execution])
    assert found.status == 200, found
    assert [each["verdict"] for each in found.body["findings"]] == ["missing"]
    assert not file.exists()

    repaired = await asked(api, VERIFY, all=True, repair=True)
    assert (repaired.body["is_sound"], repaired.body["repaired"]) == (True, 1)
    assert file.read_bytes() == before
    metrics = await api.get("/metrics")
    assert 'noetl_worker_result_tier_dr_total{outcome="missing"} 2.0' in metrics
    assert 'noetl_worker_result_tier_dr_total{outcome="repaired"} 1.0' in metrics


async def test_verify_wants_executions_that_exist(api: Api) -> None:
    assert (await asked(api, VERIFY)).status == 422
    assert (await asked(api, VERIFY, executions=["1"], all=True)).status == 422
    assert (await asked(api, VERIFY, executions=["12345"])).status == 404


async def test_upkeep_is_for_ourselves_only(api: Api) -> None:
    for path in (GC, VERIFY):
        answer = await api.call("POST", path, json={})
        assert (answer.status, answer.body["code"]) == (401, "key_missing")
