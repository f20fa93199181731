"""The tool that runs commands in a shell, one after the other, until one fails."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from typing import Any

from noetl.ports.tool import ToolCall, ToolFailed, ToolResult
from noetl.ports.tool_services import ToolServices
from noetl.tools.child_process import ChildProcess, Program, child_environment, exit_text
from noetl.tools.failures import failed

TIMEOUT_SECONDS = 600.0
OUTPUT_BYTES_MAX = 1_000_000
LAST_WORDS_MAX = 300
SHELLS = ("bash", "sh")  # the first that there is


class ShellTool:
    """Each command gets a shell of its own: a `cd` does not last. What a command leaves behind
    in the background ends with it."""

    waits = False

    def __init__(self, services: ToolServices) -> None:
        self._services = services
        self._running: set[ChildProcess] = set()

    def has_effect(self, parameters: Mapping[str, Any]) -> bool:  # noqa: ARG002 - who knows
        return True

    async def run(self, call: ToolCall) -> ToolResult:
        commands = _commands(call.parameters.get("cmds"))
        seconds = TIMEOUT_SECONDS if call.timeout_seconds is None else call.timeout_seconds
        began = self._services.clock.monotonic()
        rows: list[dict[str, Any]] = []
        timed_out = False
        try:
            async with asyncio.timeout(seconds):
                for command in commands:
                    await self._run_one(call.parameters, command, rows)
                    if rows[-1]["returncode"] != 0:
                        break
        except TimeoutError:
            timed_out = True
        value = _value(rows, self._services.clock.monotonic() - began)
        if timed_out:
            raise failed(
                "timeout",
                f"command {len(rows)} of {len(commands)} was stopped: all of them together"
                f" may take {seconds:g} seconds; allow more with timeout_seconds",
                value=value,
            )
        if value["returncode"] != 0:
            raise _failure(value, len(commands))
        return ToolResult(value=value)

    async def close(self) -> None:
        for child in list(self._running):
            await child.end()

    async def _run_one(
        self, parameters: Mapping[str, Any], command: str, rows: list[dict[str, Any]]
    ) -> None:
        """Add the row of a command, also of one that was stopped."""
        child = self._start(parameters, command)
        self._running.add(child)
        try:
            await asyncio.shield(child.exited)
        finally:
            code = await child.end()
            self._running.discard(child)
            rows.append(
                {
                    "command": command,
                    "returncode": code,
                    "stdout": child.stdout.take(),
                    "stderr": child.stderr.take(),
                }
            )

    def _start(self, parameters: Mapping[str, Any], command: str) -> ChildProcess:
        environment = child_environment(self._services.environment, parameters.get("env"))
        shell = _shell(parameters.get("shell"), environment.get("PATH"))
        folder = parameters.get("cwd")
        if not folder:
            folder = self._services.base
        program = Program(
            command=[shell, "-c", command],
            environment=environment,
            folder=str(folder),
            output_bytes_max=OUTPUT_BYTES_MAX,
        )
        try:
            return ChildProcess(program)
        except OSError as error:
            missing = error.filename or shell
            raise failed(
                "not_found", f"cannot start {shell} in {folder}: {missing}: {error.strerror}"
            ) from error
        except ValueError as error:  # a zero byte, or a name with `=`
            raise failed(
                "client_error", f"the command or its env cannot be passed on: {error}"
            ) from error


def _commands(given: Any) -> list[str]:
    """A text is one script; a list is one command each."""
    commands = given if isinstance(given, list) else [given]
    texts = [item for item in commands if isinstance(item, str) and item.strip()]
    if not texts or texts != commands:
        raise failed("client_error", "cmds must be a text or a list of texts, none of them empty")
    return texts


def _shell(given: Any, search_path: str | None) -> str:
    if isinstance(given, str) and given:
        return shutil.which(given, path=search_path or os.defpath) or given
    places = (search_path or os.defpath, os.defpath)
    found = (shutil.which(name, path=place) for name in SHELLS for place in places)
    return next((shell for shell in found if shell), "/bin/sh")


def _value(rows: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    return {
        "returncode": rows[-1]["returncode"] if rows else None,
        "stdout": "".join(row["stdout"] for row in rows)[-OUTPUT_BYTES_MAX:],
        "stderr": "".join(row["stderr"] for row in rows)[-OUTPUT_BYTES_MAX:],
        "commands": rows,
        "duration_ms": round(seconds * 1000),
    }


def _failure(value: dict[str, Any], count: int) -> ToolFailed:
    """Without the command's text, which may hold a secret; the value has it."""
    row = value["commands"][-1]
    words = (row["stderr"].strip() or row["stdout"].strip())[-LAST_WORDS_MAX:]
    number = len(value["commands"])
    return failed(
        "unknown",
        f"command {number} of {count} ended with {exit_text(row['returncode'])}: {words}".rstrip(
            ": "
        ),
        code=str(row["returncode"]),
        value=value,
    )
