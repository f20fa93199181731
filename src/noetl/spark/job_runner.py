"""Jobs of playbooks, each owned by the cycle that asked for it.

Nothing has to be recorded to find one again: its command is in the log before it starts, and the
tag and the session of a job follow from the name of its cycle.
"""

import asyncio
import hashlib
import uuid
from contextlib import suppress

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.placement import physical_key
from noetl.domain.naming.result_name import ResultName, parse_result_name
from noetl.kernel.errors import (
    ObjectMissing,
    SparkDriverLost,
    SparkJobCancelled,
)
from noetl.ports.object_store import ObjectStore
from noetl.ports.spark_jobs import SparkAnswer, SparkOrder
from noetl.results.dataset import DatasetManifest
from noetl.results.tiers import JSON_MEDIA_TYPE
from noetl.spark.driver import SparkDriver
from noetl.spark.object_place import ObjectPlace
from noetl.spark.work_job import WorkAnswer, WorkJob, result_name

TRIES_MAX = 3
"""Drivers that are lost in the middle of one job, before the job is held to be the reason."""

_SESSIONS = uuid.UUID("6f3c1a2e-5f0b-5d1c-9a53-6e6f65746c00")


class SparkJobRunner:
    """`SparkJobs` on a driver that stages may use, too. `objects` is the store at `place`."""

    def __init__(self, driver: SparkDriver, objects: ObjectStore, place: ObjectPlace) -> None:
        self._driver = driver
        self._objects = objects
        self._place = place

    async def run(self, order: SparkOrder) -> SparkAnswer:
        job = WorkJob(
            tag=tag_of(order.cycle),
            session_id=session_of(order.cycle),
            order=order,
            place=self._place,
        )
        name = parse_result_name(order.result)
        if name.attempt > 1 and order.attempt == 1:
            await self._cancel(job)  # of whoever held the cycle before, if it still runs
            staged = await self._staged(name)
            if staged is not None:
                return SparkAnswer(reference=staged)
        answer = await self._tried(job)
        return SparkAnswer(value=answer.value, reference=answer.reference)

    async def _tried(self, job: WorkJob) -> WorkAnswer:
        for tries in range(1, TRIES_MAX + 1):
            try:
                return await self._once(msgspec.structs.replace(job, tries=tries))
            except SparkDriverLost:
                if (found := await self._manifest(result_name(job.order))) is not None:
                    return WorkAnswer(reference=found)  # it was all but said
                if not job.order.is_repeatable or tries == TRIES_MAX:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _once(self, job: WorkJob) -> WorkAnswer:
        handle = await self._driver.start_work(job)
        try:
            return await handle.wait()
        finally:
            if not handle.is_over:  # nobody waits for it any more
                await asyncio.shield(self._cancel(job))

    async def _cancel(self, job: WorkJob) -> None:
        is_connect = self._driver.settings.is_connect
        where = job.session_id if is_connect else None
        with suppress(SparkDriverLost, SparkJobCancelled):
            await self._driver.cancel(job.tag, session_id=where)

    async def _staged(self, name: ResultName) -> ResultReference | None:
        """What an earlier holder stored and did not live to report."""
        for attempt in range(name.attempt - 1, 0, -1):
            earlier = msgspec.structs.replace(name, attempt=attempt)
            found = await self._manifest(earlier)
            if found is not None:
                return found
        return None

    async def _manifest(self, name: ResultName) -> ResultReference | None:
        key = physical_key(name, self._place.placement, "json")
        try:
            data = b"".join([chunk async for chunk in self._objects.read(key)])
            manifest = msgspec.json.decode(data, type=DatasetManifest)
        except (ObjectMissing, msgspec.MsgspecError):
            return None
        return ResultReference(
            type="object_store",
            uri=name.uri,
            sha256=hashlib.sha256(data).hexdigest(),
            media_type=JSON_MEDIA_TYPE,
            byte_length=len(data),
            row_count=manifest.row_count,
        )


def tag_of(cycle: str) -> str:
    """The same whenever the cycle runs again; Spark joins tags by commas, and shows them."""
    return f"noetl-work-{hashlib.sha256(cycle.encode()).hexdigest()[:24]}"


def session_of(cycle: str) -> str:
    return str(uuid.uuid5(_SESSIONS, cycle))
