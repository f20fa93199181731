"""One process of `shm.hit_ratio`: it reads or produces results in the order that it is given.

`python -m benchmarks.shared_memory_reader` with a `Part` as JSON on stdin; a `Record` on stdout.
"""

import asyncio
import hashlib
import sys
import time
from collections.abc import AsyncIterator, Iterable
from functools import cache
from pathlib import Path

import msgspec

from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.system.clock import utc_now
from noetl.kernel.instant import plus
from noetl.ports.object_store import ArrowFile, ObjectFacts
from noetl.ports.result_cache import CacheKey, Offering
from noetl.results.read_chain import ReadChain

RESULT_BYTES = 256 * 1024
LEASE_SECONDS = 0.5
AHEAD_MAX = 10
"""Results that a producer may be ahead of its slowest reader: frames in flight are limited too."""

_WAIT_SECONDS = 0.0005


class Part(msgspec.Struct, frozen=True, kw_only=True):
    folder: str
    home_id: str
    budget_bytes: int
    order: list[list[int]]  # what is read, or made, in each turn
    name: str
    produces: bool = False
    awaits: list[str] = []  # whose turns come before, or may lag behind


class Step(msgspec.Struct, frozen=True, array_like=True):
    time: float
    result: int
    kind: str  # put, hit or miss


class Record(msgspec.Struct, frozen=True, kw_only=True):
    steps: list[Step]
    misses: dict[str, int]
    refusals: dict[str, int]


def content(number: int) -> bytes:
    return number.to_bytes(8, "little") * (RESULT_BYTES // 8)


@cache
def key_of(number: int) -> CacheKey:
    return CacheKey(
        tenant_id="bench",
        organization_id="bench",
        execution_id="1",
        sha256=hashlib.sha256(content(number)).hexdigest(),
        byte_length=RESULT_BYTES,
    )


class MadeObjects:
    """A store that has every result; how long it takes does not matter here."""

    async def read(self, key: str) -> AsyncIterator[bytes]:
        yield content(int(key))

    def local_path(self, _key: str) -> Path | None:
        return None

    def arrow_file(self, _key: str) -> ArrowFile | None:
        return None

    async def head(self, key: str) -> ObjectFacts | None:
        return ObjectFacts(key, len(content(int(key))))


class Turns:
    """How far each process is: one byte per turn in a file of its name."""

    def __init__(self, part: Part) -> None:
        self._folder = Path(part.folder)
        self._own = (self._folder / f"turns-{part.name}").open("ab", buffering=0)

    def done(self) -> None:
        self._own.write(b".")

    def wait(self, names: Iterable[str], turns: int) -> None:
        for name in names:
            path = self._folder / f"turns-{name}"
            while not path.exists() or path.stat().st_size < turns:
                time.sleep(_WAIT_SECONDS)


def produce(part: Part, layer: SharedMemoryResultCache) -> list[Step]:
    turns, steps = Turns(part), []
    for turn, numbers in enumerate(part.order):
        turns.wait(part.awaits, turn - AHEAD_MAX)
        for number in numbers:
            offering = Offering(
                view=memoryview(content(number)),
                lease_expires_at=plus(utc_now(), seconds=LEASE_SECONDS),
            )
            layer.offer(key_of(number), offering)
            steps.append(Step(time.monotonic(), number, "put"))
        turns.done()
    return steps


async def consume(part: Part, layer: SharedMemoryResultCache) -> list[Step]:
    chain = ReadChain([layer], MadeObjects(), Path(part.folder))
    turns, steps = Turns(part), []
    for turn, numbers in enumerate(part.order):
        turns.wait(part.awaits, turn + 1)
        for number in numbers:
            started = time.monotonic()
            found = await chain.read(key_of(number), str(number))
            kind = "hit" if found.layer == "shared_memory" else "miss"
            steps.append(Step(started, number, kind))
        turns.done()
    await chain.close()
    return steps


def main() -> None:
    part = msgspec.json.decode(sys.stdin.buffer.read(), type=Part)
    options = SharedMemoryOptions(
        home_id=part.home_id, node_id="bench", budget_bytes=part.budget_bytes
    )
    layer = SharedMemoryResultCache(options, utc_now)
    steps = produce(part, layer) if part.produces else asyncio.run(consume(part, layer))
    stats = layer.stats()
    record = Record(steps=steps, misses=stats.misses, refusals=stats.refusals)
    sys.stdout.buffer.write(msgspec.json.encode(record))


if __name__ == "__main__":
    main()
