"""A stored result comes back as what its task gave, for its own tenant only."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.domain.payload import payload_uri
from noetl.kernel.scope import Scope
from noetl.ports.tool import ToolFailed
from noetl.templates.layered import PipelineResult
from noetl.templates.recorded import content_of
from noetl.tools.artifact import ArtifactTool
from tests.memory_payloads import MemoryPayloadStore
from tests.tools.tool_calls import SCOPE, call, services

ROWS = {"count": 2, "rows": [1, 2]}


@pytest.fixture
def store() -> MemoryPayloadStore:
    return MemoryPayloadStore()


@pytest.fixture
def tool(store: MemoryPayloadStore, tmp_path: Path) -> ArtifactTool:
    return ArtifactTool(services(tmp_path, payloads=store))


async def stored(store: MemoryPayloadStore, content: Any, scope: Scope = SCOPE) -> str:
    reference = await store.put(scope, msgspec.json.encode(content), "application/json")
    return reference.uri


async def run(tool: ArtifactTool, kind: str, parameters: dict[str, Any], **further: Any) -> Any:
    return (await tool.run(call(kind, parameters, **further))).value


async def test_an_object_is_given_by_its_fields_and_as_a_whole(
    tool: ArtifactTool, store: MemoryPayloadStore
) -> None:
    uri = await stored(store, content_of(ROWS))

    value = await run(tool, "artifact", {"action": "get", "result_ref": uri})

    assert value == {**ROWS, "data": ROWS, "_ref": uri}


async def test_a_field_called_data_stays_what_it_is(
    tool: ArtifactTool, store: MemoryPayloadStore
) -> None:
    uri = await stored(store, content_of({"data": [1], "status": 200}))

    value = await run(tool, "artifact", {"action": "get", "uri": uri})

    assert value == {"data": [1], "status": 200, "_ref": uri}


async def test_a_pipelines_result_is_its_last_tasks(
    tool: ArtifactTool, store: MemoryPayloadStore
) -> None:
    uri = await stored(store, content_of(PipelineResult({"z": {"n": 1}, "a": [7]})))

    assert await run(tool, "resolve", {"ref": uri}) == [7]


async def test_what_is_no_result_is_given_as_it_is(
    tool: ArtifactTool, store: MemoryPayloadStore
) -> None:
    uri = await stored(store, [{"index": 0}, {"index": 1}])

    assert await run(tool, "result_fetch", {"ref": uri}) == [{"index": 0}, {"index": 1}]


@pytest.mark.parametrize("wrap", ["result_ref", "ref", "uri", "_ref"])
async def test_a_reference_may_be_a_mapping(
    tool: ArtifactTool, store: MemoryPayloadStore, wrap: str
) -> None:
    uri = await stored(store, content_of(5))

    assert await run(tool, "artifact", {"action": "get", "result_ref": {wrap: uri}}) == 5
    given = {"result_ref": {"kind": "result_ref", wrap: uri}}
    assert await run(tool, "artifact", {"action": "get"}, input=given) == 5


@pytest.mark.parametrize("data", [ROWS, [1, None], "text", None, {"value": 1}, {"data": {"a": 1}}])
async def test_what_is_put_is_what_is_got(tool: ArtifactTool, data: Any) -> None:
    put = await run(tool, "artifact", {"action": "put", "data": data})
    got = await run(tool, "artifact", {"action": "get", "result_ref": put})

    assert put.keys() == {"_ref", "sha256", "bytes"}
    assert put["_ref"] == payload_uri(SCOPE, put["sha256"])
    assert (got | {"_ref": None} if isinstance(data, dict) else got) == (
        {"data": data, **data, "_ref": None} if isinstance(data, dict) else data
    )


async def test_data_may_stand_in_the_input(tool: ArtifactTool) -> None:
    put = await run(tool, "artifact", {"action": "put"}, input={"data": [1]})

    assert await run(tool, "resolve", {"ref": put}) == [1]


async def test_another_tenants_result_is_not_there(
    tool: ArtifactTool, store: MemoryPayloadStore
) -> None:
    uri = await stored(store, content_of(ROWS), Scope("rival", "research"))
    await stored(store, content_of(ROWS))  # the same bytes in the call's own scope

    with pytest.raises(ToolFailed, match="nothing is stored under") as raised:
        await run(tool, "artifact", {"action": "get", "uri": uri})

    assert raised.value.failure.kind == "missing_reference"


async def test_what_is_missing_may_come_later(tool: ArtifactTool) -> None:
    uri = payload_uri(SCOPE, "0" * 64)

    with pytest.raises(ToolFailed, match="nothing is stored under") as raised:
        await run(tool, "resolve", {"ref": uri})

    assert raised.value.failure.kind == "missing_reference"
    assert raised.value.failure.retryable


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"action": "get"}, "needs the reference of a stored result"),
        ({"action": "get", "result_ref": ""}, "needs the reference of a stored result"),
        ({"action": "get", "uri": "s3://bucket/key"}, "is no reference of a stored result"),
        ({"action": "get", "uri": payload_uri(SCOPE, "../up")}, "is no reference"),
        ({"action": "put"}, "needs `data`"),
        ({"action": "burn"}, "use get or put"),
    ],
)
async def test_a_mistake_in_the_task_is_told(
    tool: ArtifactTool, parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed, match=words) as raised:
        await run(tool, "artifact", parameters)

    assert raised.value.failure.kind == "client_error"


async def test_damaged_and_foreign_bytes_are_told_apart(
    tool: ArtifactTool, store: MemoryPayloadStore
) -> None:
    foreign = await store.put(SCOPE, b"PAR1", "application/octet-stream")
    with pytest.raises(ToolFailed, match="holds no JSON"):
        await run(tool, "resolve", {"ref": foreign.uri})

    uri = await stored(store, content_of(1))
    await store.damage(b'{"value":2}')
    with pytest.raises(ToolFailed, match="should hash to") as raised:
        await run(tool, "resolve", {"ref": uri})
    assert raised.value.failure.kind == "storage_access"


async def test_only_plain_data_can_be_put(tool: ArtifactTool) -> None:
    with pytest.raises(ToolFailed, match="must be plain data") as raised:
        await run(tool, "artifact", {"action": "put", "data": {"n": float("nan")}})

    assert raised.value.failure.kind == "schema"
