"""The engine for stages that the settings name: Spark, where it can be had."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from noetl.bootstrap.cells import cells_text
from noetl.bootstrap.settings import Settings, cloud_environment
from noetl.bootstrap.slot_task import SlotTask, silent_seconds_max
from noetl.bootstrap.spark import spark_driver, spark_settings, what_spark_lacks
from noetl.bootstrap.store_keys import store_variables
from noetl.decider.view import StageEngines
from noetl.kernel.errors import SettingInvalid
from noetl.kernel.instant import plus
from noetl.kernel.stage_token import StageGrant, stage_token
from noetl.ports.slot_source import StageOrder
from noetl.runtime.stage_slots import StageSlots
from noetl.spark.driver import SparkDriver
from noetl.spark.session import TASK_TRIES_MAX, SparkSettings
from noetl.spark.slot_source import SparkSlotSource

if TYPE_CHECKING:
    from noetl.bootstrap.engine import Engine

_LOG = logging.getLogger(__name__)
FUNCTION = "noetl.bootstrap.stage_slot:run_slot"
TOKEN_SECONDS = 24 * 60 * 60.0
SERVE_SECONDS = 20 * 60 * 60.0
"""Slots leave before their token is worth nothing; those that follow have a new one."""

STAGES_AT_ONCE = 4
"""Stages of one machine whose slots run side by side: a slot stays until its stage is over."""


def stage_engines(settings: Settings) -> StageEngines:
    """What loops may ask for. Nothing is started; who wants Spark for all of them and cannot have
    it is told now, and not by the first loop."""
    lacks = what_spark_lacks(settings)
    if lacks is None:
        return settings.stage_engine
    if settings.stage_engine == "spark":
        _LOG.warning("NOETL_STAGE_ENGINE is spark, and loops run on local workers: %s", lacks)
    return "none"


def slots_of_a_stage(settings: Settings) -> int:
    """The most that one may have; how many it asks for follows from its `max_in_flight`."""
    return settings.spark_slots or settings.processors


@asynccontextmanager
async def stage_slots(engine: "Engine") -> AsyncIterator[StageSlots]:
    """Slots for the stages of an engine. Spark starts with the first stage that wants it."""
    settings = engine.settings
    async with AsyncExitStack() as stack:
        door = _Door(engine, stack)

        async def argument(order: StageOrder) -> bytes:
            return msgspec.msgpack.encode(await door.task_for(order))

        source = SparkSlotSource(engine.spark, FUNCTION, argument)
        slots = StageSlots(engine.coordinator, source, slots_of_a_stage(settings))
        stack.push_async_callback(slots.close)
        yield slots


def shared_driver(settings: Settings) -> SparkDriver:
    """One for the stages of a process and for the jobs of its playbooks."""
    return spark_driver(settings, slot_settings(settings))


def slot_settings(settings: Settings) -> SparkSettings:
    """On this machine there is room for the slots of several stages: each stays to its end."""
    chosen = spark_settings(settings)
    if chosen.master:
        return chosen
    tasks = STAGES_AT_ONCE * slots_of_a_stage(settings)
    return msgspec.structs.replace(chosen, master=f"local[{tasks},{TASK_TRIES_MAX}]")


class _Door:
    """Where slots come in: the server of this process, started for them if it does not listen."""

    def __init__(self, engine: "Engine", stack: AsyncExitStack) -> None:
        self._engine = engine
        self._stack = stack
        self._own: str | None = None
        self._opening = asyncio.Lock()

    async def task_for(self, order: StageOrder) -> SlotTask:
        from noetl.bootstrap.serving import internal_key_of  # noqa: PLC0415 - it needs the engine

        settings = self._engine.settings
        grant = StageGrant(
            execution_id=order.execution_id,
            stage_id=order.stage_id,
            expires_at=plus(self._engine.clock.now(), seconds=TOKEN_SECONDS),
        )
        return SlotTask(
            server_url=await self._address(),
            token=stage_token(internal_key_of(settings), grant),
            execution_id=order.execution_id,
            settings=_for_slots(settings),
            variables=store_variables(cloud_environment()),
            serve_seconds=SERVE_SECONDS,
            silent_seconds_max=silent_seconds_max(order.lease_seconds),
            frames_at_once=order.frames_per_slot,
            base=str(Path.cwd()),
        )

    async def _address(self) -> str:
        settings = self._engine.settings
        if settings.public_url is not None:
            return settings.public_url
        if not slot_settings(settings).is_on_loopback:
            raise SettingInvalid(
                "executors on other machines have to reach this server; set NOETL_PUBLIC_URL to"
                " its address there"
            )
        async with self._opening:
            holder = self._engine.home.holder()
            if holder is not None and holder.address is not None:
                return holder.address
            if self._own is None:
                self._own = await self._open()
            return self._own

    async def _open(self) -> str:
        from noetl.bootstrap.serving import listening  # noqa: PLC0415 - it needs the engine

        opened = listening(self._engine, "127.0.0.1", 0, announces=False)
        address, _, _ = await self._stack.enter_async_context(opened)
        return address


def _for_slots(settings: Settings) -> Settings:
    """What a slot has to know: our own keys stay where they are."""
    return msgspec.structs.replace(
        settings,
        home=str(Path(settings.home).resolve()),
        result_cells=cells_text(settings),
        secret_key=None,
        api_key=None,
        internal_key=None,
        spark_master="",
        spark_conf="",
        log_url="sqlite:",
        python_processes=1,  # there are as many slots as processors
    )
