"""Everything that runs playbooks, put together: in one process on the embedded profile."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from noetl.adapters.system.chance import new_uuid
from noetl.adapters.system.clock import SystemClock
from noetl.bootstrap import collector
from noetl.bootstrap.background import in_background
from noetl.bootstrap.checking import is_other_kind
from noetl.bootstrap.home import Home
from noetl.bootstrap.journals import open_journals
from noetl.bootstrap.leaving import Leaving
from noetl.bootstrap.materializing import materialize
from noetl.bootstrap.platform import Platform, open_platform
from noetl.bootstrap.results import keep_swept
from noetl.bootstrap.settings import Settings, child_environment, template_environment
from noetl.bootstrap.spark import results_place
from noetl.bootstrap.stages import shared_driver, slots_of_a_stage, stage_engines, stage_slots
from noetl.bootstrap.sweeping import Kept, KeptInFolder, sweep
from noetl.bootstrap.telemetry import open_telemetry, traced
from noetl.domain.log import SealedEvent
from noetl.domain.work import WorkerIdentity
from noetl.kernel.ids import ExecutionId, WorkerId
from noetl.pipeline.interpreter import Interpreter
from noetl.ports.clock import Clock
from noetl.ports.frame_journal import FrameJournal
from noetl.ports.telemetry import Telemetry
from noetl.ports.tool_services import ToolServices
from noetl.runtime.control import Control
from noetl.runtime.coordinator import Coordinator, Held
from noetl.runtime.desk import CoordinatorDesk
from noetl.runtime.frames_cursor import CursorRows
from noetl.runtime.handout import LeaseTerms
from noetl.runtime.log_lines import tell_events
from noetl.runtime.placing import LOCALITY, place_in
from noetl.runtime.playbooks import Playbooks
from noetl.runtime.projector import Projector
from noetl.runtime.reaper import Reaper
from noetl.runtime.recovery import Recovery
from noetl.runtime.spans import ExecutionSpans
from noetl.runtime.start_keys import StartKeys
from noetl.runtime.starting import Starter
from noetl.runtime.worker import Worker, WorkerServices
from noetl.spark.driver import SparkDriver
from noetl.spark.job_runner import SparkJobRunner
from noetl.tools.cursors import CursorDrivers
from noetl.tools.registry import ON_SERVER, Tools, tool_factories

PROJECTION_PAUSE_SECONDS = 0.1

LOCAL_WORKER = WorkerId("local")
"""The worker inside the process that holds the log: it dies with it, and so do its leases."""


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line and the HTTP API work with."""

    settings: Settings
    platform: Platform
    playbooks: Playbooks
    coordinator: Coordinator
    starter: Starter
    control: Control
    desk: CoordinatorDesk
    journal: FrameJournal
    journals: Kept
    home: Home
    clock: Clock
    spark: SparkDriver
    projector: Projector
    recovery: Recovery
    leaving: Leaving
    gauges: list[Callable[[], Mapping[str, float]]] = msgspec.field(default_factory=list)


@asynccontextmanager
async def open_engine(
    settings: Settings, *, has_worker: bool = True, resumes: bool = True
) -> AsyncIterator[Engine]:
    """Takes the home, goes on with what was running, and serves until the block ends.

    Without `resumes` it goes on only with what `recovery.take_up` is asked for.
    """
    async with AsyncExitStack() as stack:
        home = stack.enter_context(Home(Path(settings.home)).held())
        telemetry = open_telemetry(settings, SystemClock(), "server")
        stack.push_async_callback(telemetry.close)
        platform = await stack.enter_async_context(open_platform(settings))
        engine = _built(settings, platform, home, telemetry)
        engine.coordinator.listeners.append(tell_events)
        if engine.coordinator.held.terms.is_traced:
            engine.coordinator.listeners.append(ExecutionSpans(engine.coordinator, telemetry).hear)
        stack.push_async_callback(_catch_up, engine.projector)
        stack.push_async_callback(engine.coordinator.drain)
        projecting = _project(engine.coordinator, engine.projector)
        await stack.enter_async_context(in_background(projecting))
        stack.push_async_callback(engine.spark.close)
        if has_worker:
            await stack.enter_async_context(_working(engine))
        else:
            engine.coordinator.seats.offered = frozenset(tool_factories()) - {ON_SERVER}
        slots = await stack.enter_async_context(stage_slots(engine))
        engine.recovery.listeners.append(slots.resume)
        if resumes:
            await engine.recovery.resume(settings.scope)
        await stack.enter_async_context(
            in_background(Reaper(engine.coordinator, engine.clock).run())
        )
        work = KeptInFolder(Path(settings.home) / "work")
        sweeping = sweep(engine.coordinator, work, engine.journals, engine.clock.now())
        await stack.enter_async_context(in_background(sweeping))
        await stack.enter_async_context(in_background(keep_swept(platform.results, engine.clock)))
        await stack.enter_async_context(in_background(materialize(engine.coordinator, platform)))
        collector.settle()
        yield engine
        await engine.leaving.leave()


def _built(settings: Settings, platform: Platform, home: Home, telemetry: Telemetry) -> Engine:
    clock = SystemClock()
    playbooks = Playbooks(platform.catalog, platform.payloads, is_other_kind)
    terms = LeaseTerms(
        lease_seconds=settings.lease_seconds,
        attempts_max=settings.attempts_max,
        is_traced=settings.otlp_endpoint is not None,
    )
    coordinator = Coordinator(
        Held(
            log=platform.log,
            results=platform.results,
            playbooks=playbooks,
            clock=clock,
            new_id=platform.new_id,
            processors=settings.processors,
            visits_max=settings.visits_max,
            engine=stage_engines(settings),
            engine_slots=slots_of_a_stage(settings),
            terms=terms,
            telemetry=telemetry,
            snapshots=platform.snapshots,
        )
    )
    coordinator.seats.preference = settings.locality_preference
    projector = Projector(
        platform.log, platform.projections, platform.snapshots, now=platform.clock
    )
    journals = open_journals(settings, platform.objects)
    keys = StartKeys(platform.projections, clock, platform.new_id)
    starter = Starter(coordinator, new_uuid, template_environment(settings), keys)
    return Engine(
        settings=settings,
        platform=platform,
        playbooks=playbooks,
        coordinator=coordinator,
        starter=starter,
        control=Control(coordinator),
        desk=CoordinatorDesk(coordinator, starter),
        journal=journals.journal,
        journals=journals.kept,
        home=home,
        clock=clock,
        spark=shared_driver(settings),
        projector=projector,
        recovery=Recovery(
            coordinator, projector, platform.projections, dead=frozenset({LOCAL_WORKER})
        ),
        leaving=Leaving(coordinator, settings.drain_seconds),
    )


@asynccontextmanager
async def _working(engine: Engine) -> AsyncIterator[None]:
    """A worker of our own. It drains before the coordinator stops listening."""
    settings, platform = engine.settings, engine.platform
    telemetry = engine.coordinator.held.telemetry
    given = _tool_services(engine)
    tools, drivers = Tools(given), CursorDrivers(given)
    engine.coordinator.seats.offered = frozenset(tools.kinds)
    engine.gauges.append(tools.gauges)
    identity = WorkerIdentity(
        worker_id=LOCAL_WORKER,
        boot_id=new_uuid(),
        slots=settings.worker_slots,
        tools=tools.kinds,
        locality=place_in({LOCALITY: {"node": settings.node_name}}),
    )
    interpreter = Interpreter(
        traced(tools, telemetry), platform.credentials, platform.results, engine.clock, new_uuid
    )
    services = WorkerServices(
        desk=engine.desk,
        pipelines=interpreter,
        playbooks=engine.playbooks,
        results=platform.results,
        journal=engine.journal,
        clock=engine.clock,
        telemetry=telemetry,
        cursors=CursorRows(
            drivers=drivers,
            calls=interpreter,
            desk=engine.desk,
            results=platform.results,
            clock=engine.clock,
        ),
    )
    worker = Worker(identity, services)
    try:
        async with in_background(worker.run()):
            engine.leaving.worker = worker
            yield
    finally:
        await drivers.close()
        await tools.close()


def _tool_services(engine: Engine) -> ToolServices:
    settings, platform = engine.settings, engine.platform
    return ToolServices(
        payloads=platform.payloads,
        results=platform.results,
        clock=engine.clock,
        desk=engine.desk,
        folder=Path(settings.home) / "work",
        base=Path.cwd(),
        environment=child_environment(),
        python_processes_max=settings.processors,
        python_memory_bytes_max=settings.python_memory_mb * 1024 * 1024,
        spark=SparkJobRunner(engine.spark, platform.results.objects, results_place(settings)),
    )


async def _catch_up(projector: Projector) -> None:
    """Whoever looks at the home when nobody holds it finds the last events in its read models."""
    while await projector.advance():
        pass


async def _project(coordinator: Coordinator, projector: Projector) -> None:
    """Read models follow the log at a little distance: what gathers meanwhile is one page."""
    has_news = asyncio.Event()

    def wake(_execution: ExecutionId, _events: Sequence[SealedEvent]) -> None:
        has_news.set()

    coordinator.listeners.append(wake)
    while True:
        await has_news.wait()
        has_news.clear()
        while events := await projector.advance():
            coordinator.measures.tell("projected_events", events)
        await coordinator.held.clock.sleep(PROJECTION_PAUSE_SECONDS)
