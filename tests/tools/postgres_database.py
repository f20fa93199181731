"""The postgres tool with a credential of the test's own database."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from noetl.domain.credential import OpenCredential
from noetl.kernel.canonical_json import check_plain, encode
from noetl.ports.tool import ToolFailed, ToolResult
from noetl.tools.postgres import PostgresTool
from tests.tools.tool_calls import call


class Database:
    def __init__(self, tool: PostgresTool, dsn: str) -> None:
        parts = urlsplit(dsn)
        self.tool = tool
        self.fields: dict[str, Any] = {
            "db_host": parts.hostname,
            "db_port": str(parts.port),
            "db_user": parts.username,
            "db_password": parts.password,
            "db_name": parts.path.lstrip("/"),
        }

    async def run(self, query: Any, **parameters: Any) -> Any:
        result = await self.result(query, **parameters)
        check_plain(result.value)
        encode(result.value)
        return result.value

    async def result(self, query: Any, **parameters: Any) -> ToolResult:
        credential = OpenCredential(name="pg", type="postgres", data=self.fields)
        timeout = parameters.pop("timeout_seconds", None)
        parameters = {"query": query, **parameters}
        return await self.tool.run(
            call("postgres", parameters, credentials={"": credential}, timeout_seconds=timeout)
        )

    async def failure(self, query: Any, **parameters: Any) -> ToolFailed:
        with pytest.raises(ToolFailed) as raised:
            await self.run(query, **parameters)
        assert self.fields["db_password"] not in f"{raised.value.failure} {raised.value.pg}"
        return raised.value
