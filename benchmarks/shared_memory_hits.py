"""`shm.hit_ratio.<pattern>`: readers in several processes, room for half of what they read.

The limit is a clairvoyant cache of the same size over the same reads: it knows what will be read
next, so nothing can hit more often. The target is 0.6.

- `handover`: a producer writes results; each reader reads every result soon after it was written,
  and two of the last 200 again, each as likely as the other. Half of the 200 fit.
- `skewed`: few of 200 results are read often, many rarely (Zipf); now and then a reader scans all.
- `cycle`: everybody reads all 200 in turn, again and again: without knowledge of the future, half
  of them is what a cache can hit.
"""

import asyncio
import os
import random
import subprocess
import sys
import tempfile
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

import msgspec

from benchmarks.measurement import Measurement
from benchmarks.shared_memory_reader import RESULT_BYTES, Part, Record, Step
from noetl.adapters.cache.region import HEADER
from noetl.adapters.cache.shared_memory import FOLDER

READERS = 3
WINDOW = 200
"""The working set, in results."""

FITTING = WINDOW // 2
PRODUCED = 1_000
READS_EACH = 1_500
SCAN_EVERY = 500
REREADS = 2
CYCLES = 8
TARGET = 0.6
PATIENCE_SECONDS = 300

Orders = dict[str, list[list[int]]]
"""What each process reads in each of its turns; `producer` writes."""


def handover() -> Orders:
    orders: Orders = {"producer": [[number] for number in range(PRODUCED)]}
    for reader in range(READERS):
        dice = random.Random(reader)
        orders[f"reader-{reader}"] = [
            [number, *dice.choices(range(max(0, number - WINDOW), number + 1), k=REREADS)]
            for number in range(PRODUCED)
        ]
    return orders


def skewed() -> Orders:
    weights = [1 / rank for rank in range(1, WINDOW + 1)]
    orders: Orders = {}
    for reader in range(READERS):
        dice = random.Random(reader)
        drawn = dice.choices(range(WINDOW), weights, k=READS_EACH)
        orders[f"reader-{reader}"] = [[number] for number in drawn]
    for turn in range(SCAN_EVERY, READS_EACH, SCAN_EVERY):
        orders["reader-0"][turn] += range(WINDOW)
    return orders


def cycle() -> Orders:
    every = [[number] for number in range(WINDOW)]
    return {f"reader-{reader}": every * CYCLES for reader in range(READERS)}


async def run(orders: Orders) -> dict[str, Record]:
    """Every process of a pattern, at one time, over one budget."""
    home = f"bench{os.getpid()}"
    producers = [name for name in orders if name == "producer"]
    readers = [name for name in orders if name != "producer"]
    with tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder:
        parts = [
            Part(
                folder=folder,
                home_id=home,
                budget_bytes=FITTING * (RESULT_BYTES + HEADER.size),
                order=order,
                name=name,
                produces=name in producers,
                awaits=readers if name in producers else producers,
            )
            for name, order in orders.items()
        ]
        try:
            records = await asyncio.gather(*(asyncio.to_thread(in_process, part) for part in parts))
        finally:
            for region in FOLDER.glob(f"noetl-{home}*"):
                region.unlink()
    return dict(zip(orders, records, strict=True))


def in_process(part: Part) -> Record:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.shared_memory_reader"],
        input=msgspec.json.encode(part),
        stdout=subprocess.PIPE,
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    return msgspec.json.decode(answer.stdout, type=Record)


def clairvoyant_ratio(steps: Sequence[Step], fitting: int) -> float:
    """Keep what is read soonest; what comes in may also stay outside."""
    reads: defaultdict[int, deque[int]] = defaultdict(deque)
    for position, step in enumerate(steps):
        if step.kind != "put":
            reads[step.result].append(position)
    held: set[int] = set()
    hits = 0

    def next_read(result: int) -> float:
        return reads[result][0] if reads[result] else float("inf")

    for step in steps:
        if step.kind != "put":
            reads[step.result].popleft()
            hits += step.result in held
        held.add(step.result)
        if len(held) > fitting:
            held.remove(max(held, key=next_read))
    return hits / sum(step.kind != "put" for step in steps)


async def measure(name: str, pattern: Callable[[], Orders]) -> AsyncIterator[Measurement]:
    records = await run(pattern())
    steps = sorted(
        (step for record in records.values() for step in record.steps), key=lambda step: step.time
    )
    kinds = [step.kind for step in steps]
    ratio = kinds.count("hit") / (len(kinds) - kinds.count("put"))
    refusals = sum(sum(record.refusals.values()) for record in records.values())
    yield Measurement(
        name=f"shm.hit_ratio.{name}",
        value=ratio,
        unit="hits per read",
        limit=clairvoyant_ratio(steps, FITTING),
        limit_name="clairvoyant cache of the same size, same reads",
        detail={
            "processes": len(records),
            "reads": len(kinds) - kinds.count("put"),
            "working_set_results": WINDOW,
            "budget_results": FITTING,
            "admissions_refused": refusals,
            "target": TARGET,
            "met": str(ratio > TARGET),
        },
    )


BENCHMARKS = {
    f"shm.hit_ratio.{pattern.__name__}": partial(measure, pattern.__name__, pattern)
    for pattern in (handover, skewed, cycle)
}
