"""Verification, repair and collection of results over the stores that the settings name."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.adapters.system.chance import new_uuid
from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap.checking import is_other_kind
from noetl.bootstrap.platform import Platform
from noetl.bootstrap.settings import Settings, child_environment
from noetl.pipeline.interpreter import Interpreter
from noetl.ports.tool_services import ToolServices
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.read_chain import ReadChain
from noetl.results.store import ResultStore
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.replay import Replay
from noetl.runtime.results_gc import Collected, ResultCollector
from noetl.runtime.results_repair import ResultRepairs
from noetl.runtime.results_repair_aside import AsideObjectStore
from noetl.runtime.results_repair_copies import CachedCopies, Replica, ReplicatedCopies
from noetl.runtime.results_repair_guard import ClosedDesk, EffectFreeTools
from noetl.runtime.results_repair_log import FromTheLog, History
from noetl.runtime.results_repair_rerun import Apart, RunAgain
from noetl.tools.registry import Tools

_PREFIX = "repair-"


def result_collector(platform: Platform) -> ResultCollector:
    collected = Collected(
        log=platform.log,
        projections=platform.projections,
        results=platform.results,
        clock=SystemClock(),
    )
    return ResultCollector(collected)


@asynccontextmanager
async def open_repairs(settings: Settings, platform: Platform) -> AsyncIterator[ResultRepairs]:
    """What is run again writes to a folder of its own, which goes at the end."""
    results = platform.results
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(_folder(Path(settings.home) / "scratch"))
        apart = await _apart(settings, platform, folder, stack)
        playbooks = Playbooks(platform.catalog, platform.payloads, is_other_kind)
        history = History(platform.log, Replay(platform.log, platform.snapshots), playbooks)
        sources = (
            CachedCopies(results.chain.layers),
            ReplicatedCopies(lambda: _replicas(results)),
            FromTheLog(history, results),
            RunAgain(history, apart),
        )
        yield ResultRepairs(platform.log, results, sources)


async def _apart(
    settings: Settings, platform: Platform, folder: Path, stack: AsyncExitStack
) -> Apart:
    clock = SystemClock()
    objects = AsideObjectStore(platform.objects, FilesystemObjectStore(folder / "objects"))
    stack.push_async_callback(objects.close)
    payloads = ObjectPayloadStore(objects)
    # No layers: what is made again may be wrong, and must not be read by anybody else.
    chain = ReadChain([], objects, folder)
    results = ResultStore(objects, payloads, settings.placement, chain)
    results.inline_bytes_max = settings.event_result_context_max_bytes
    stack.push_async_callback(results.close)
    tools = Tools(
        ToolServices(
            payloads=payloads,
            results=results,
            clock=clock,
            desk=ClosedDesk(),
            folder=folder / "work",
            base=Path.cwd(),
            environment=child_environment(),
            python_processes_max=settings.processors,
            python_memory_bytes_max=settings.python_memory_mb * 1024 * 1024,
        )
    )
    stack.push_async_callback(tools.close)
    pipelines = Interpreter(EffectFreeTools(tools), platform.credentials, results, clock, new_uuid)
    return Apart(pipelines=pipelines, results=results, objects=objects, clock=clock)


def _replicas(results: ResultStore) -> Sequence[Replica]:
    places = results.chain.places.in_order()
    return [Replica(place.name, place.objects) for place in places if place.is_replica]


@contextmanager
def _folder(parent: Path) -> Iterator[Path]:
    """Whoever comes removes what killed ones have left."""
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.glob(f"{_PREFIX}*-*"):
        if not _is_alive(left.name.removeprefix(_PREFIX).partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_alive(pid: str) -> bool:
    if not pid.isdecimal():
        return True  # not one of ours
    with suppress(PermissionError):
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return False
    return True
