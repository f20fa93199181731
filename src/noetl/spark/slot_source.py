"""Slots for stages as tasks of Spark jobs: one job for each stage, found again by its tag."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from noetl.kernel.errors import NoETLError, SparkDriverLost
from noetl.ports.slot_source import Announce, EngineJob, StageOrder
from noetl.spark.driver import SparkDriver
from noetl.spark.slots import SlotJob

ENGINE = "spark"
ATTEMPTS_PER_JOB = 1_000
"""No task of a job is tried more often: slots of a later job are above all of an earlier one."""

WARM_UP = "noetl-warm-up"
WARM_UP_FUNCTION = "noetl.spark.probe:where"


class SparkSlotSource:
    """`argument` is what the slots of a stage need to know, made when they are about to start."""

    def __init__(
        self,
        driver: SparkDriver,
        function: str,
        argument: Callable[[StageOrder], Awaitable[bytes]],
    ) -> None:
        self._driver = driver
        self._function = function
        self._argument = argument
        self._has_orders = False
        self._warmed = ""  # the session whose first job was run ahead of need

    async def provide(self, order: StageOrder, announce: Announce) -> None:
        self._has_orders = True
        session = await self._driver.session()
        job = SlotJob(
            tag=f"noetl-stage-{order.stage_id}-{order.generation}",
            stage_id=order.stage_id,
            slots=order.slots,
            function=self._function,
            argument=await self._argument(order),
            description=f"{order.step} of execution {order.execution_id}",
            incarnation_first=order.generation * ATTEMPTS_PER_JOB,
        )
        await announce(
            EngineJob(
                engine=ENGINE,
                session_id=session.session_id,
                tag=job.tag,
                slots=job.slots,
                ui_url=session.ui_url,
            )
        )
        handle = await self._driver.submit(job, session_id=session.session_id)
        try:
            await handle.wait()
        finally:
            if not handle.is_over:  # nobody waits for it any more
                await self._driver.cancel(job.tag, session_id=session.session_id)

    def leaves_none(self, error: NoETLError) -> bool:
        """On this machine a driver is lost only when all that it started is gone."""
        return isinstance(error, SparkDriverLost) and self._driver.settings.is_local

    async def withdraw(self, job: EngineJob) -> None:
        await self._driver.cancel(job.tag, session_id=job.session_id)

    async def warm_up(self) -> None:
        with suppress(NoETLError):  # whoever needs it hears of it
            session = await self._driver.session()
            # The first job of a session takes seconds, too; one that is wanted now is the first.
            if self._has_orders or session.session_id == self._warmed:
                return
            self._warmed = session.session_id
            job = SlotJob(tag=WARM_UP, stage_id="", slots=1, function=WARM_UP_FUNCTION)
            await (await self._driver.submit(job, session_id=session.session_id)).wait()

    async def close(self) -> None:
        """The driver is closed by the process that made it: others use it, too."""
