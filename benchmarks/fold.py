"""`fold.verify`: decode, verify and fold, against bare decoding and hashing of the same events."""

import gc
import hashlib
import time
from collections.abc import AsyncIterator

import orjson

from benchmarks.measurement import Measurement, median
from noetl.domain.execution.fold import fold
from noetl.domain.log import EMPTY_STREAM, StoredEvent
from noetl.kernel.ids import StepName
from noetl.kernel.instant import from_millis
from noetl.testing.histories import (
    START_MILLIS,
    History,
    begin,
    command_cycle,
    execution_ids,
    finish,
    loop_of_frames,
    source_of,
)
from noetl.wire.codec import open_stored, seal

EVENTS_EACH = 25_000
ROUNDS = 5


def history() -> list[StoredEvent]:
    """Half the events are of single-tool steps, half of a loop's frames."""
    (execution,) = execution_ids(1)
    told = History(execution)
    drafts = list(begin(told))
    for visit in range(1, EVENTS_EACH // 7 + 1):
        drafts += command_cycle(told, StepName("fetch"), visit, {"row_count": 9, "note": "x" * 400})
    drafts += loop_of_frames(told, StepName("each"), EVENTS_EACH // 3)
    drafts += finish(told, StepName("each"))
    sealed = seal(drafts, EMPTY_STREAM, source_of(execution))
    ingest_time = from_millis(START_MILLIS)
    return [
        StoredEvent(execution, version, version, ingest_time, item.canonical, item.checksum)
        for version, item in enumerate(sealed, start=1)
    ]


def verified_fold(stored: list[StoredEvent]) -> float:
    started = time.perf_counter()
    state = fold(open_stored(row) for row in stored)
    elapsed = time.perf_counter() - started
    if state.execution.status != "COMPLETED" or state.execution.unmatched_events:
        raise AssertionError(state.execution)
    return elapsed


def bare(stored: list[StoredEvent]) -> float:
    started = time.perf_counter()
    for row in stored:
        orjson.loads(row.canonical)
        hashlib.sha256(row.canonical).hexdigest()
    return time.perf_counter() - started


async def verify() -> AsyncIterator[Measurement]:
    stored = history()
    gc.collect()
    gc.freeze()  # the corpus itself is not what either side works on
    seconds = [(verified_fold(stored), bare(stored)) for _ in range(ROUNDS)]
    gc.unfreeze()
    ours, limit = (len(stored) / median(column) for column in zip(*seconds, strict=True))
    size = sum(len(row.canonical) for row in stored) / len(stored)
    yield Measurement(
        name="fold.verify",
        value=ours,
        unit="events/s",
        limit=limit,
        limit_name="orjson.loads + sha256 of the same bytes",
        detail={"events": len(stored), "bytes_per_event": round(size)},
    )


BENCHMARKS = {"fold.verify": verify}
