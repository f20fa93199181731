"""What a tool may stand on. Factories take it; nothing else connects a tool to the program."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from noetl.ports.clock import Clock
from noetl.ports.payload_store import PayloadStore
from noetl.ports.spark_jobs import SparkJobs
from noetl.ports.stored_results import StoredResults
from noetl.ports.tool import Tool
from noetl.ports.work_desk import ChildDesk


class ToolServices(msgspec.Struct, frozen=True, kw_only=True):
    payloads: PayloadStore
    results: StoredResults
    clock: Clock
    desk: ChildDesk
    folder: Path  # for files that live as long as an execution
    base: Path = Path()  # what relative paths in playbooks are relative to
    environment: dict[str, str] = {}  # what child processes get: never the server's own
    python_processes_max: int = 2
    python_memory_bytes_max: int = 2 * 1024**3
    spark: SparkJobs | None = None  # None: not in this process


ToolFactory = Callable[[ToolServices], Tool]
