"""Names of results lead to what their events know of them."""

from typing import Any

import msgspec
import pytest

from noetl.domain.events import Event
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.naming.result_name import ResultName, parse_results
from noetl.kernel.errors import ExecutionNotFound
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.results.nested import STORED, NestedTable
from noetl.results.tiers import encode
from noetl.runtime.result_lookup import FoundResult, find_result
from noetl.testing.given import Placed
from tests.memory_results import memory_results
from tests.unit.domain.happenings import STARTED, claimed, completed, issued
from tests.unit.runtime.tracing import log_of
from tests.unit.runtime.written import FIRST

HERE = f"noetl://{DEFAULT_SCOPE.tenant_id}/{DEFAULT_SCOPE.organization_id}/results/{FIRST}"


async def found(uri: str, *happenings: Event | Placed) -> FoundResult | None:
    log = await log_of(STARTED, *happenings)
    return await find_result(log, memory_results(), DEFAULT_SCOPE, uri)


def tasks(**values: Any) -> dict[str, Any]:
    return {"tasks": values, "order": list(values)}


async def test_a_stored_result_is_found_with_what_proves_it() -> None:
    uri = f"{HERE}/load/0/0/1@1"
    reference = ResultReference(type="object_store", uri=uri, sha256="ab" * 32, byte_length=7)
    result = Result(status="ok", reference=reference, context={"extracted": {}})

    told = await found(uri, issued(), claimed(), completed(result=result))

    assert told is not None
    assert (told.reference, told.content) == (reference, {})


async def test_a_small_result_is_found_in_its_event() -> None:
    result = Result(status="ok", context={"value": 1})

    told = await found(f"{HERE}/load/0/0/1@1", issued(), claimed(), completed(result=result))

    assert told is not None
    assert (told.reference, told.content, told.task) == (None, {"value": 1}, None)


async def test_a_task_is_found_in_the_result_of_its_step() -> None:
    result = Result(status="ok", context=tasks(read=1, write=2))

    told = await found(f"{HERE}/load:read/0/0/1@1", issued(), claimed(), completed(result=result))

    assert told is not None
    assert (told.content, told.task) == (tasks(read=1, write=2), "read")


async def test_a_table_that_only_the_result_of_its_step_names_is_found_with_what_proves_it() -> (
    None
):
    results = memory_results()
    owner = parse_results(f"{HERE}/load/0/0/1@1")
    assert isinstance(owner, ResultName)
    table = ResultReference(
        type="object_store", uri=f"{HERE}/load:read/0/0/1@1", sha256="cd" * 32, byte_length=9
    )
    at = NestedTable(at=("tasks", "read"), keys=("value",), reference=table)
    content = {**tasks(read=None), STORED: msgspec.to_builtins([at])}
    reference = await results.stage(owner, encode(content, 0))
    result = Result(
        status="ok", reference=reference, context={"extracted": {"order": ["read"], "tasks": {}}}
    )
    log = await log_of(STARTED, issued(), claimed(), completed(result=result))

    told = await find_result(log, results, DEFAULT_SCOPE, table.uri)

    assert told is not None
    assert (told.reference, told.task) == (table, None)


async def test_another_name_and_another_tenant_find_nothing() -> None:
    result = Result(status="ok", context={"value": 1})
    log = await log_of(STARTED, issued(), claimed(), completed(result=result))

    assert await find_result(log, memory_results(), DEFAULT_SCOPE, f"{HERE}/load/0/0/2@1") is None
    with pytest.raises(ExecutionNotFound):
        await find_result(log, memory_results(), Scope("acme", "acme"), f"{HERE}/load/0/0/1@1")
