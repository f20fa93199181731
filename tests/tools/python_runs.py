"""Short ways to run code, and tools that are closed afterwards."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from noetl.tools.python import PythonTool
from tests.tools.calls import call, services

PID = "import os; result = os.getpid()"

ToolMaker = Callable[..., PythonTool]


@asynccontextmanager
async def making(folder: Path) -> AsyncIterator[ToolMaker]:
    """Makes tools with one process each, unless told otherwise."""
    made: list[PythonTool] = []

    def maker(**given: Any) -> PythonTool:
        options: dict[str, Any] = {"environment": {"PATH": "/usr/bin:/bin"}, "processes_max": 1}
        made.append(PythonTool(services(folder, **(options | given))))
        return made[-1]

    try:
        yield maker
    finally:
        for tool in made:
            await tool.close()


async def run(tool: PythonTool, code: str, given: Any = None, **options: Any) -> Any:
    parameters = {"code": code, **options.pop("parameters", {})}
    return (await tool.run(call("python", parameters, input=given or {}, **options))).value
