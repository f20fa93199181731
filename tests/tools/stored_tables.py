"""Large stored tables, as the interpreter passes them on to tools."""

from typing import Any

from noetl.domain.naming.result_name import ResultName
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.ports.tool_services import ToolServices
from noetl.results.store import ResultStore
from noetl.templates.table_rows import TableRows


async def stored_rows(services: ToolServices, scope: Scope, rows: list[Any]) -> TableRows:
    """Wants LAZY_BYTES_MIN to be low: tests have small tables."""
    store = services.results
    assert isinstance(store, ResultStore)
    name = ResultName(
        tenant=scope.tenant_id,
        project=scope.organization_id,
        execution_id=ExecutionId("7"),
        step=StepName("s"),
    )
    recorded = await store.record(name, rows, inline_bytes_max=0)
    content = await store.content(scope, name.uri, recorded.reference, lazily=True)
    found = content["value"]
    assert isinstance(found, TableRows)
    return found
