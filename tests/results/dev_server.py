"""A real `noetl dev` in a process of its own, that may be killed."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

NOETL = Path(sys.executable).with_name("noetl")

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
    next: [{step: count}]
  - step: count
    tool:
      kind: python
      code: |
        def main(rows):
            return {"rows": len(rows), "last": rows[-1]["number"]}
      args: {rows: "{{ start }}"}
"""


@dataclass
class Dev:
    process: asyncio.subprocess.Process
    session: aiohttp.ClientSession

    async def run(self, text: str) -> str:
        """Register and execute it; returns the execution once it has completed."""
        async with self.session.post("/api/catalog/register", json={"content": text}) as answer:
            path = (await answer.json())["path"]
        async with self.session.post("/api/execute", json={"path": path}) as answer:
            execution = str((await answer.json())["execution_id"])
        async with self.session.get(f"/api/executions/{execution}/stream") as answer:
            await answer.read()
        async with self.session.get(f"/api/executions/{execution}") as answer:
            shown = await answer.json()
        assert shown["status"] == "COMPLETED", shown
        return execution

    async def get(self, path: str, **query: str) -> Any:
        async with self.session.get(path, params=query) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()


@asynccontextmanager
async def dev_server(home: Path, **settings: str) -> AsyncIterator[Dev]:
    environment = {name: value for name, value in os.environ.items() if "NOETL_" not in name}
    process = await asyncio.create_subprocess_exec(
        NOETL,
        *("dev", "--port", "0", "--json"),
        env={**environment, "NOETL_HOME": str(home), "NOETL_LOG_LEVEL": "error", **settings},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        address = json.loads(await process.stdout.readline())["address"]
        async with aiohttp.ClientSession(address) as session:
            yield Dev(process, session)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
