"""The tool that runs Python code, in processes apart: neither a crash nor a loop reaches ours."""

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from noetl.ports.tool import ToolCall, ToolFailed, ToolResult, ToolTable
from noetl.ports.tool_services import ToolServices
from noetl.tools.child_process import child_environment
from noetl.tools.failures import RETRYABLE_BY_KIND, failed
from noetl.tools.python_pool import PythonPool
from noetl.tools.python_process import Answer, AnswerTable, CodeFailure, PythonProcess
from noetl.tools.python_source import source_of
from noetl.tools.table_inputs import TableInput, table_inputs, without_rows

ROWS: Final = "rows"
ARROW: Final = "arrow"
"""What `tables` may say: in which form lists of records arrive."""


class PythonTool:
    """Code gets its input as global names, and gives `result` or what `main` returns."""

    waits = False
    takes_tables = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._pool = PythonPool(services)

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG002 - who knows
        return True

    async def run(self, call: ToolCall) -> ToolResult:
        code = await source_of(call.parameters)
        async with (
            table_inputs(call.input, self._services, call.scope) as tables,
            self._pool.process(call.scope) as process,
        ):
            with process.table_place() as place:
                answer = await _answer(call, process, _request(call, code, tables, place))
                printed = process.take_output()
                if answer.table is not None:
                    table = await asyncio.to_thread(_kept, place, answer.table)
                    return ToolResult(table=table, printed=printed)
        return _result(answer, printed)

    def gauges(self) -> dict[str, float]:
        return self._pool.gauges()

    async def close(self) -> None:
        await self._pool.close()


async def _answer(call: ToolCall, process: PythonProcess, request: bytes) -> Answer:
    """Raises ToolFailed for code that took too long, or failed."""
    try:
        async with asyncio.timeout(call.timeout_seconds):
            answer = await process.ask(request, call.pass_on)
    except TimeoutError as error:
        raise failed(
            "timeout",
            f"the code was stopped after {call.timeout_seconds:g} seconds;"
            " allow more with timeout_seconds, or give it less to do",
            py={"exception": None, "traceback": None, "output": process.take_output()},
        ) from error
    if answer.failure is not None:
        raise _raised(answer.failure, process.take_output())
    return answer


def _kept(written: Path, table: AnswerTable) -> ToolTable:
    """Under another name: the process may be writing the next one soon."""
    from noetl.results.stored_table import StoredTable  # noqa: PLC0415 - loads Arrow

    descriptor, name = tempfile.mkstemp(suffix=".feather", dir=written.parent)
    os.close(descriptor)
    path = written.replace(name)
    with StoredTable(path) as stored:
        digest = stored.schema_digest
    return ToolTable(
        path=path,
        row_count=table.row_count,
        byte_length=table.byte_length,
        schema_digest=digest,
    )


def _request(call: ToolCall, code: str, tables: Sequence[TableInput], place: Path) -> bytes:
    parameters = call.parameters
    form = parameters.get("tables") or ROWS
    if form not in (ROWS, ARROW):
        raise failed("client_error", f"`tables` is {form!r}; write `arrow`, or leave it out")
    request = {
        "code": code,
        "file": f"<{call.task}>",
        "input": without_rows(call.input) if tables else call.input,
        "tables": [{"at": table.at, "path": str(table.path)} for table in tables],
        "arrow": form == ARROW,
        "table_file": str(place),
        # It can be large; code that does not name it cannot look at it.
        "context": call.context if "context" in code else {},
        "libs": parameters.get("libs"),
        "env": child_environment({}, parameters.get("env")),
        "cwd": str(parameters.get("cwd") or ""),
        "chunks": call.pass_on is not None,
    }
    try:
        return msgspec.json.encode(request, enc_hook=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise failed("schema", f"the input cannot be passed to the code: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")


def _raised(failure: CodeFailure, output: str) -> ToolFailed:
    py = {"exception": failure.exception, "traceback": failure.traceback, "output": output}
    kind = failure.kind if failure.kind in RETRYABLE_BY_KIND else "unknown"
    return failed(kind, failure.message, py=py)


def _result(answer: Answer, printed: str) -> ToolResult:
    value = answer.value
    if isinstance(value, dict) and value.get("status") == "error":
        raise _reported(value, printed)
    return ToolResult(value=value, printed=printed)


def _reported(value: dict[str, Any], printed: str) -> ToolFailed:
    """Code that says `status: error` has failed, in its own words."""
    error = value.get("error")
    words = error if isinstance(error, dict) else {}
    message = words.get("message") or (error if isinstance(error, str) else None)
    message = message or value.get("message") or "the code gave status error and no message"
    kind = words.get("kind")
    retryable = words.get("retryable")
    return failed(
        kind if kind in RETRYABLE_BY_KIND else "unknown",
        str(message),
        retryable=retryable if isinstance(retryable, bool) else None,
        value=value,
        py={"output": printed} if printed else None,
    )
