"""The supervisor of Spark's driver: starts one when first needed, and another when it was lost.

The driver is a process of its own: a JVM that grows, hangs or dies takes nobody along, and when we
die the driver sees its connection end and takes JVM and workers with it.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import TracebackType
from typing import Generic, Self, TypeVar

import msgspec

from noetl.kernel.errors import RequestInvalid, SparkDriverLost, SparkMissing, SparkStartFailed
from noetl.servers.java import Java
from noetl.spark.driver_process import DriverProcess, Summaries
from noetl.spark.session import LOOPBACK, SparkSettings
from noetl.spark.slots import ARGUMENT_BYTES_MAX, SlotJob
from noetl.spark.work_job import WorkAnswer, WorkJob

START_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 30.0
"""Of a job that was cancelled. One that goes on for longer is not to be stopped without its driver,
which then ends with all that runs in it."""

Answer = TypeVar("Answer")


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded before a job starts: with Connect, a later driver can go back to it."""

    session_id: str
    spark_version: str
    ui_url: str | None


class JobHandle(Generic[Answer]):
    """A job that was handed to Spark."""

    def __init__(self, tag: str, session_id: str, ended: "asyncio.Future[Answer]") -> None:
        self.tag = tag
        self.session_id = session_id
        self._ended = ended

    @property
    def is_over(self) -> bool:
        return self._ended.done()

    async def wait(self) -> Answer:
        """Raises SparkJobFailed, SparkJobCancelled or SparkDriverLost."""
        return await asyncio.shield(self._ended)


class SparkDriver:
    """For one event loop. As an asynchronous context manager it is closed at the end."""

    def __init__(
        self,
        settings: SparkSettings,
        *,
        find_java: Callable[[], Java],  # asked when a JVM is needed, and not before
        environment: Mapping[str, str],
        stop_seconds_max: float = STOP_SECONDS_MAX,
    ) -> None:
        self.settings = settings
        self._stop_seconds_max = stop_seconds_max
        self._find_java = find_java
        self._environment = environment
        self._starting = asyncio.Lock()
        self._process: DriverProcess | None = None
        self._session: SessionInfo | None = None

    @property
    def is_up(self) -> bool:
        return self._process is not None and not self._process.is_gone

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.is_up else None

    async def session(self) -> SessionInfo:
        """Start if need be; raises JavaMissing, SparkMissing or SparkStartFailed."""
        async with self._starting:
            return (await self._running())[1]

    async def submit(self, job: SlotJob, *, session_id: str | None = None) -> JobHandle[Summaries]:
        """Hand a job over. With the session that was recorded for it, it runs there or not at all.

        Raises SparkDriverLost when that session is gone.
        """
        if len(job.argument) > ARGUMENT_BYTES_MAX:
            size = f"{len(job.argument)} bytes of argument; {ARGUMENT_BYTES_MAX} may be"
            raise RequestInvalid(f"slot job {job.tag} has {size}: pass a reference instead")
        async with self._starting:
            process, session = await self._running()
            if session_id not in (None, session.session_id):
                raise SparkDriverLost(f"has no session {session_id} any more")
            if process.has_job(job.tag):
                raise RequestInvalid(f"a Spark job {job.tag} runs already; choose another tag")
            return JobHandle(job.tag, session.session_id, await process.start_job(job))

    async def start_work(self, job: WorkJob) -> JobHandle[WorkAnswer]:
        """Hand a playbook's own job over. Raises RequestInvalid while one with its tag runs."""
        async with self._starting:
            process, session = await self._running()
            if process.has_job(job.tag):
                raise RequestInvalid(f"a Spark job {job.tag} runs already; cancel it first")
            where = job.session_id if self.settings.is_connect else session.session_id
            return JobHandle(job.tag, where, await process.start_work(job))

    async def cancel(self, tag: str, *, session_id: str | None = None) -> None:
        """Returns once the job is over; a job that is not there is over.

        `session_id` is where it was started. With Connect it is reached there even after the driver
        that started it is gone; a classic job is gone with its driver.
        """
        if not self.is_up and (session_id is None or not self.settings.is_connect):
            return
        async with self._starting:
            process, session = await self._running()
        where = session_id or session.session_id
        await process.cancel(tag, where, self._stop_seconds_max)

    async def running_tags(self) -> tuple[str, ...]:
        """For display. Starts nothing."""
        if self._process is None or self._process.is_gone:
            return ()
        return (await self._process.status()).running

    async def close(self) -> None:
        """End it with all it started; jobs that run are lost."""
        async with self._starting:
            process, self._process, self._session = self._process, None, None
            if process is not None:
                await process.end(is_orderly=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _running(self) -> tuple[DriverProcess, SessionInfo]:
        if self._process is not None and self._session is not None and self.is_up:
            return self._process, self._session
        if self._process is not None:
            await self._process.end(is_orderly=False)  # what is left of a lost one
        process = DriverProcess(self.settings, await asyncio.to_thread(self._surroundings))
        try:
            opened = await asyncio.wait_for(process.open(), START_SECONDS_MAX)
        except TimeoutError:
            await process.end(is_orderly=False)
            raise SparkStartFailed(f"no session after {START_SECONDS_MAX:g} seconds") from None
        except BaseException:
            await process.end(is_orderly=False)
            raise
        self._process = process
        self._session = SessionInfo(
            session_id=opened.session_id,
            spark_version=opened.spark_version,
            ui_url=opened.ui_url,
        )
        return self._process, self._session

    def _surroundings(self) -> dict[str, str]:
        """The environment of the driver, and so of every worker on this machine."""
        if find_spec("pyspark") is None:
            raise SparkMissing
        ours = {"PYSPARK_PYTHON": sys.executable}
        if not self.settings.is_connect:
            ours["JAVA_HOME"] = str(self._find_java().home)
        if self.settings.is_on_loopback:
            ours["SPARK_LOCAL_IP"] = LOOPBACK  # the page with the jobs, too
        return {**self._environment, **ours}
