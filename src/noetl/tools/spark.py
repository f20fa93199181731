"""Run SQL or a function on Spark, over stored results by name, rows, files and tables.

The job runs in the process that drives Spark; its result is stored by the tasks that compute it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from noetl.kernel.errors import (
    JavaMissing,
    RequestInvalid,
    SparkDriverLost,
    SparkError,
    SparkJobCancelled,
    SparkJobFailed,
    SparkMissing,
)
from noetl.ports.spark_jobs import SparkAnswer, SparkOrder
from noetl.ports.tool import ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.tools.failures import failed
from noetl.tools.spark_inputs import inputs_of, texts_of, write_of
from noetl.tools.sql_statements import SPARK, split

_READING: Final = frozenset(
    {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN"}
)
_WRITING: Final = frozenset({"INSERT", "OVERWRITE", "MERGE", "DELETE", "UPDATE", "CREATE", "INTO"})
_FOREIGN: Final = frozenset({"REFLECT", "TRY_REFLECT", "JAVA_METHOD", "."})
"""Functions that call what they please. `.` is one of a catalogue: nobody knows what it does."""

_AUTHOR: Final = frozenset({"AnalysisException", "ParseException", "RequestInvalid", "SyntaxError"})


class SparkTool:
    waits = False
    takes_tables = True

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:
        query = parameters.get("query")
        if parameters.get("write") or not isinstance(query, str):
            return True
        statements = split(query, SPARK)
        return not all(
            statement.words
            and statement.words[0] in _READING
            and _WRITING.isdisjoint(statement.words)
            and _FOREIGN.isdisjoint(call.strip("`").upper() for call in statement.calls)
            for statement in statements
        )

    async def run(self, call: ToolCall) -> ToolResult:
        jobs = self._services.spark
        if jobs is None:
            raise failed(
                "client_error",
                "a spark task runs on the server, which drives Spark; not in a worker elsewhere"
                " and not in a loop with `engine: spark`",
            )
        order = self._order(call)
        try:
            async with asyncio.timeout(call.timeout_seconds):
                answer = await jobs.run(order)
        except TimeoutError as error:
            message = f"the job took longer than {call.timeout_seconds:g} s and was cancelled;"
            raise failed("timeout", f"{message} raise `timeout`, or give it less to do") from error
        except RequestInvalid as error:
            raise failed("client_error", str(error)) from error
        except SparkError as error:
            raise _said(error, order) from error
        return _result(answer)

    async def close(self) -> None:
        """The driver is closed by the process that started it."""

    def _order(self, call: ToolCall) -> SparkOrder:
        parameters = call.parameters
        query, code = parameters.get("query"), parameters.get("code")
        if (query is None) == (code is None and parameters.get("function") is None):
            raise failed("client_error", "a spark task has either `sql`, or `code` or `function`")
        return SparkOrder(
            cycle=call.idempotency_key,
            result=call.result,
            attempt=call.attempt,
            query=None if query is None else _one_statement(str(query)),
            code=code,
            function=parameters.get("function"),
            inputs=inputs_of(call, self._services.base),
            arguments={} if query is not None else dict(call.input),
            write=write_of(parameters.get("write"), self._services.base),
            options=texts_of(parameters.get("options"), "options"),
            libs=_libs(parameters.get("libs")),
            description=f"{call.step}/{call.task} of execution {call.execution_id}",
            is_repeatable=call.is_repeatable,
        )


def _one_statement(query: str) -> str:
    statements = split(query, SPARK)
    if len(statements) != 1:
        count = len(statements)
        raise failed("client_error", f"`sql` has {count} statements; give one, or use `code`")
    return statements[0].text


def _libs(given: Any) -> dict[str, str]:
    if isinstance(given, list):
        return {str(module).partition(".")[0]: str(module) for module in given}
    return texts_of(given, "libs")


def _result(answer: SparkAnswer) -> ToolResult:
    if answer.reference is not None:
        return ToolResult(stored=answer.reference)
    return ToolResult(value=answer.value)


def _said(error: SparkError, order: SparkOrder) -> ToolFailed:
    match error:
        case SparkJobFailed(exception=exception) if exception in _AUTHOR:
            return failed("client_error", error.reason, code=exception)
        case SparkJobFailed():
            py = {"exception": error.exception} if order.query is None else None
            return failed("unknown", error.reason, code=error.exception or None, py=py)
        case SparkJobCancelled():
            return failed("cancelled", str(error))
        case JavaMissing() | SparkMissing():
            return failed("client_error", str(error))
        case SparkDriverLost() if not order.is_repeatable:
            message = "Spark was lost in the middle of a job that must not run twice;"
            return failed("effect_in_doubt", f"{message} see what it did before it is run again")
        case _:
            return failed("server_error", str(error))
