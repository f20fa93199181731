"""How an effect ended, beside its stored result: for a holder who finds the bytes and no record.

A result is stored before anybody is told of it, and a failure may have one too, so that its object
is there does not say what became of the call. This does. It lies under the name of whoever wrote
it, and is the business of the holders of one visit: log and journal are asked first.
"""

from contextlib import suppress

import msgspec

from noetl.domain.naming.placement import physical_key
from noetl.domain.naming.result_name import ResultName
from noetl.domain.work import HOLDERS_MAX, Call
from noetl.kernel.errors import ObjectError, ObjectMissing, StoreUnavailable
from noetl.pipeline.job import Job
from noetl.pipeline.keeping import name_of
from noetl.results.store import ResultStore
from noetl.results.tiers import JSON_MEDIA_TYPE

EXTENSION = "call"
HOLDERS_ASKED_MAX = 8
"""The newest of the earlier holders; work is given up before there are more, unless told not to."""


async def stage(store: ResultStore, job: Job, call: Call) -> None:
    """Of a success only: what failed is run again. Small results are in the record itself."""
    is_stored = call.result is not None and call.result.reference is not None
    if not is_stored or call.error is not None or _is_recorded_at_once(job, call):
        return
    name = name_of(job, call.task, call.run)
    with suppress(ObjectError, StoreUnavailable):  # then the next holder doubts, as it would have
        data = msgspec.json.encode(call)
        await store.objects.create(_key(store, name), data, media_type=JSON_MEDIA_TYPE)


async def staged(store: ResultStore, job: Job, task: str, run: int) -> Call | None:
    """What the newest holder before this one has left. Raises StoreUnavailable."""
    name = name_of(job, task, run)
    first = (job.attempt - 1) // HOLDERS_MAX * HOLDERS_MAX + 1  # by a person's retry on
    for attempt in range(job.attempt - 1, max(first, job.attempt - HOLDERS_ASKED_MAX) - 1, -1):
        key = _key(store, msgspec.structs.replace(name, attempt=attempt))
        with suppress(ObjectMissing, msgspec.MsgspecError):
            data = b"".join([chunk async for chunk in store.objects.read(key)])
            return msgspec.json.decode(data, type=Call)
    return None


def _is_recorded_at_once(job: Job, call: Call) -> bool:
    """The last call of a row goes to its frame's journal, with those of other rows."""
    return job.is_in_loop and call.task == job.step.tasks[-1].name


def _key(store: ResultStore, name: ResultName) -> str:
    return physical_key(name, store.placement, EXTENSION)
