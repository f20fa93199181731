"""`replay.million`: one execution of a million events, replayed from its first event.

Two figures: the rate, against bare reading, decoding and hashing of the same rows, and the peak
memory, against that of a tenth of the events. Each replay runs in a process of its own, so that
the peak is its own too.
"""

import asyncio
import hashlib
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from itertools import count, islice
from pathlib import Path

import msgspec
import orjson

from benchmarks.measurement import ROOT, Measurement
from noetl.adapters.sqlite.connection import SqliteFile
from noetl.adapters.sqlite.event_log import SqliteEventLog
from noetl.adapters.system.clock import utc_now
from noetl.domain.events.envelope import Draft
from noetl.domain.log import APPEND_EVENTS_MAX, Append, Appended, AtPosition, StreamHead
from noetl.kernel.ids import StepName
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.replay import Replay, ReplayRequest
from noetl.testing.histories import (
    History,
    begin,
    command_cycle,
    execution_ids,
    loop_of_frames,
    source_of,
)
from noetl.wire.codec import seal

EVENTS = 1_000_000
TENTH = EVENTS // 10
APPENDS_PER_COMMIT = 20
(EXECUTION,) = execution_ids(1)


class Outcome(msgspec.Struct):
    """What the process that replayed says of itself."""

    seconds: float
    peak_mb: float
    events: int
    checksum: str


def endless(history: History) -> Iterator[Draft]:
    """A loop over arcs that never ends: a step ten times, then a stage of twenty frames."""
    yield from begin(history)
    for visit in count(1):
        yield from command_cycle(history, StepName("fetch"), visit)
        if visit % 10 == 0:
            yield from loop_of_frames(history, StepName("each"), frames=20, visit=visit)


async def write_history(path: Path) -> None:
    file = SqliteFile(path)
    log = await SqliteEventLog.open(file, utc_now)
    drafts = islice(endless(History(EXECUTION)), EVENTS)
    head = StreamHead()
    while head.version < EVENTS:
        group = []
        for _ in range(APPENDS_PER_COMMIT):
            sealed = seal(list(islice(drafts, APPEND_EVENTS_MAX)), head, source_of(EXECUTION))
            group.append(Append(DEFAULT_SCOPE, EXECUTION, head.version, sealed))
            last = sealed[-1].envelope
            head = StreamHead(last.stream_version, last.event_id)
        outcomes = await log.append(group)
        if not all(isinstance(outcome, Appended) for outcome in outcomes):
            raise AssertionError(outcomes)
    await file.close()


async def replay(path: Path, events: int) -> Outcome:
    """Runs in the child."""
    file = SqliteFile(path)
    log = await SqliteEventLog.open(file, utc_now)
    request = ReplayRequest(scope=DEFAULT_SCOPE, execution_id=EXECUTION, cutoff=AtPosition(events))
    started = time.perf_counter()
    replayed = await Replay(log).state(request)
    seconds = time.perf_counter() - started
    await file.close()
    report = replayed.report
    return Outcome(seconds, peak_memory_mb(), report.event_count, report.checksum)


def peak_memory_mb() -> float:
    """Of this program alone: `ru_maxrss` would start at the size of the parent that forked us."""
    status = Path("/proc/self/status").read_text()
    (peak_kb,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(peak_kb) / 1024


def replay_in_a_process(path: Path, events: int) -> Outcome:
    command = [sys.executable, "-m", "benchmarks.replay", str(path), str(events)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    outcome = msgspec.json.decode(done.stdout, type=Outcome)
    if outcome.events != events:
        raise AssertionError(outcome)
    return outcome


def read_bare(path: Path) -> float:
    connection = sqlite3.connect(path)
    started = time.perf_counter()
    for (canonical,) in connection.execute("SELECT canonical FROM event ORDER BY position"):
        orjson.loads(canonical)
        hashlib.sha256(canonical).hexdigest()
    seconds = time.perf_counter() - started
    connection.close()
    return seconds


async def million() -> AsyncIterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        path = Path(folder) / "log.db"
        await write_history(path)
        tenth, whole = (replay_in_a_process(path, events) for events in (TENTH, EVENTS))
        bare_seconds = read_bare(path)
    yield Measurement(
        name="replay.million",
        value=EVENTS / whole.seconds,
        unit="events/s",
        limit=EVENTS / bare_seconds,
        limit_name="bare SELECT + orjson.loads + sha256 of the same rows",
        detail={"seconds": round(whole.seconds, 2), "checksum": whole.checksum},
    )
    yield Measurement(
        name="replay.million",
        value=whole.peak_mb,
        unit="MB peak memory",
        limit=tenth.peak_mb,
        limit_name=f"peak memory of the first {TENTH} events; at most 1.2 of it",
    )


BENCHMARKS = {"replay.million": million}

if __name__ == "__main__":
    answer = asyncio.run(replay(Path(sys.argv[1]), int(sys.argv[2])))
    print(msgspec.json.encode(answer).decode())
