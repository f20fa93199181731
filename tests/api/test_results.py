"""A result is found by its name alone: where it lies, and what it is."""

import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from noetl.bootstrap.platform import open_platform as open_platform_of
from noetl.bootstrap.settings import Settings
from noetl.domain.naming.placement import physical_key
from noetl.domain.naming.result_name import ResultName
from noetl.kernel.ids import ExecutionId, StepName
from noetl.runtime.materializer import Materializer
from tests.api.running import Api, running_api

TABLE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: table, path: tests/table}
workflow:
  - step: start
    tool:
      kind: python
      code: |
        def main():
            return [{"number": number, "text": "x" * 100} for number in range(2000)]
"""
ROWS = [{"number": number, "text": "x" * 100} for number in range(2_000)]


def named(api: Api, execution: str) -> ResultName:
    scope = api.engine.settings.scope
    return ResultName(
        tenant=scope.tenant_id,
        project=scope.organization_id,
        execution_id=ExecutionId(execution),
        step=StepName("start"),
    )


async def made(api: Api) -> ResultName:
    execution = await api.start(TABLE)
    assert (await api.ended(execution))["status"] == "COMPLETED"
    return named(api, execution)


async def test_a_plan_names_the_key_and_where_it_lies(api: Api) -> None:
    name = await made(api)

    plan = await api.get("/api/results/resolve", uri=name.uri)

    placement = api.engine.settings.placement
    key = physical_key(name, placement, "feather")
    assert (plan["uri"], plan["key"], plan["cell"]) == (name.uri, key, "local")
    assert plan["media_type"] == "application/vnd.apache.arrow.file"
    url = api.engine.settings.payload_path.as_uri()
    assert plan["locations"] == [
        {"provider": "file", "url": url, "region": "local", "replica_state": "primary"}
    ]
    objects = api.engine.platform.objects
    assert Path(unquote(urlsplit(f"{url}/{key}").path)) == objects.local_path(key)
    facts = await objects.head(key)
    assert facts is not None
    assert plan["byte_length"] == facts.byte_length


async def test_the_value_is_given_to_who_has_only_the_reference(api: Api) -> None:
    name = await made(api)
    assert await api.get("/api/result/resolve", ref=name.uri) == ROWS


def without_layers(settings: Settings) -> Settings:
    """So that a read asks the stores."""
    return msgspec.structs.replace(
        settings, result_memory_mb=0, result_shared_memory_mb=0, result_disk_mb=0
    )


async def test_damaged_bytes_are_never_given(settings: Settings) -> None:
    async with running_api(without_layers(settings)) as api:
        name = await made(api)
        key = physical_key(name, settings.placement, "feather")
        path = api.engine.platform.objects.local_path(key)
        assert path is not None
        data = bytearray(path.read_bytes())
        data[data.index(b"x" * 100)] ^= 1
        path.write_bytes(data)

        answer = await api.call("GET", "/api/result/resolve", params={"ref": name.uri})

        assert (answer.status, answer.body["code"]) == (500, "payload_corrupt")


SMALL = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: small, path: tests/small}
workflow:
  - step: start
    tool:
      - {name: first, kind: python, code: "result = {'n': 1}"}
      - {name: second, kind: python, code: "result = {'n': 2}"}
"""


async def test_a_result_in_its_event_is_found_by_its_name(api: Api) -> None:
    execution = await api.start(SMALL)
    assert (await api.ended(execution))["status"] == "COMPLETED"
    traced = await api.get(f"/api/executions/{execution}/results")
    values = {
        each["task"]: await api.get("/api/result/resolve", ref=each["uri"])
        for each in traced["results"]
        if each["task"] is not None
    }
    assert values == {"first": {"n": 1}, "second": {"n": 2}}
    whole = named(api, execution).uri
    tasks = await api.get("/api/result/resolve", ref=whole)
    assert tasks == {"first": {"n": 1}, "second": {"n": 2}}
    plan = await api.get("/api/results/resolve", uri=whole)
    assert (plan["tier"], plan["keys"], plan["locations"]) == ("inline", [], [])


async def test_what_is_not_there_and_what_is_no_name_are_told_apart(api: Api) -> None:
    name = named(api, "7012345678901234567")
    foreign = msgspec.structs.replace(name, tenant="acme")
    for uri in (name.uri, foreign.uri):
        for path, key in (("/api/result/resolve", "ref"), ("/api/results/resolve", "uri")):
            answer = await api.call("GET", path, params={key: uri})
            assert (answer.status, answer.body["code"]) == (404, "payload_missing")
    answer = await api.call("GET", "/api/result/resolve", params={"ref": "noetl://x"})
    assert (answer.status, answer.body["code"]) == (400, "name_invalid")
    answer = await api.call("GET", "/api/results/resolve", params={"uri": "noetl://x"})
    assert (answer.status, answer.body["code"]) == (422, "name_invalid")


async def test_another_tenants_result_is_not_there_even_when_it_is(api: Api) -> None:
    foreign = msgspec.structs.replace(named(api, "7012345678901234567"), tenant="acme")
    await api.engine.platform.results.record(foreign, ROWS)
    answer = await api.call("GET", "/api/results/resolve", params={"uri": foreign.uri})
    assert answer.status == 404


def with_replica(settings: Settings, folder: Path) -> Settings:
    cell = {
        "name": "local",
        "provider": "file",
        "url": "file:",
        "region": "local",
        "replicas": [{"provider": "file", "url": folder.as_uri(), "region": "far"}],
    }
    cells = msgspec.json.encode({"cells": [cell]}).decode()
    return msgspec.structs.replace(without_layers(settings), result_cells=cells)


async def moved_to_the_replica(api: Api, name: ResultName, folder: Path) -> Path:
    key = physical_key(name, api.engine.settings.placement, "feather")
    primary = api.engine.platform.objects.local_path(key)
    assert primary is not None
    copy = folder / key
    copy.parent.mkdir(parents=True)
    primary.rename(copy)
    return primary


async def test_a_result_whose_primary_is_gone_is_read_from_the_replica(
    settings: Settings, tmp_path: Path
) -> None:
    async with running_api(with_replica(settings, tmp_path / "far")) as api:
        name = await made(api)
        reference = await reference_of(api, name)
        await moved_to_the_replica(api, name, tmp_path / "far")

        assert await api.get("/api/result/resolve", ref=name.uri) == ROWS
        results = api.engine.platform.results
        assert await results.content(settings.scope, name.uri, reference) == {"value": ROWS}
        assert results.chain.stats().found["replica"] == 2
        plan = await api.get("/api/results/resolve", uri=name.uri, preferred_region="far")
        assert [each["replica_state"] for each in plan["locations"]] == [
            "async_replica",
            "primary",
        ]


async def reference_of(api: Api, name: ResultName) -> Any:
    """What the producer would report, staged again."""
    results = api.engine.platform.results
    return (await results.record(name, ROWS)).reference


async def test_the_materializer_brings_back_what_only_the_replica_has(
    settings: Settings, tmp_path: Path
) -> None:
    async with running_api(with_replica(settings, tmp_path / "far")) as api:
        name = await made(api)
        primary = await moved_to_the_replica(api, name, tmp_path / "far")
    expected = hashlib.sha256(
        (tmp_path / "far" / physical_key(name, settings.placement, "feather")).read_bytes()
    )
    async with open_platform_of(with_replica(settings, tmp_path / "far")) as platform:
        await platform.projections.clear()  # as if the log had not been checked yet
        materializer = Materializer(platform.log, platform.projections, platform.results)
        while await materializer.advance():
            pass
        assert platform.results.counts.materialized["filled_replica"] == 1
    assert hashlib.sha256(primary.read_bytes()).digest() == expected.digest()


async def test_what_nobody_has_is_listed(settings: Settings) -> None:
    async with running_api(settings) as api:
        name = await made(api)
        assert await api.get("/api/results/unfilled") == {"results": [], "count": 0}
    nothing_near = msgspec.structs.replace(settings, result_shared_memory_mb=0, result_memory_mb=0)
    async with open_platform_of(nothing_near) as platform:
        await platform.objects.delete(physical_key(name, settings.placement, "feather"))
        await platform.projections.clear()
        materializer = Materializer(platform.log, platform.projections, platform.results)
        while await materializer.advance():
            pass
    async with running_api(nothing_near) as api:
        told = await api.get("/api/results/unfilled")
    assert told["count"] == 1
    assert told["results"][0]["outcome"] == "missing"
    assert told["results"][0]["reference"]["uri"] == name.uri


async def test_numbers_of_results_are_shown(api: Api) -> None:
    name = await made(api)
    await api.get("/api/result/resolve", ref=name.uri)
    told = await metrics(api)
    assert told['noetl_result_staged_total{encoding="feather"}'] == 1
    assert told['noetl_result_staged_bytes_total{encoding="feather"}'] > 200_000
    assert told['noetl_result_uri_accept_total{outcome="canonical"}'] == 1
    assert told['noetl_result_uri_accept_total{outcome="malformed"}'] == 0
    assert told['noetl_result_resolve_total{outcome="resolved_feather",path="tier"}'] >= 1
    assert told["noetl_storage_ipc_admission_success_total"] == 1
    assert told["tier15_bytes_in_use"] > 200_000


async def metrics(api: Api) -> dict[str, float]:
    lines = (await api.call("GET", "/metrics")).body.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {key: float(value) for key, value in pairs}
