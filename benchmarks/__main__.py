"""`python -m benchmarks [--only PREFIX]`: one JSON line per figure on stdout, nothing else."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Callable

from benchmarks import (
    append,
    fold,
    frames,
    kills,
    lookup,
    pft,
    playbooks,
    recovery,
    replay,
    shared_memory,
    stages,
    tiers,
)
from benchmarks.measurement import Measurement, commit_name

Benchmark = Callable[[], AsyncIterator[Measurement]]

BENCHMARKS: dict[str, Benchmark] = {
    **append.BENCHMARKS,
    **fold.BENCHMARKS,
    **replay.BENCHMARKS,
    **lookup.BENCHMARKS,
    **playbooks.BENCHMARKS,
    **stages.BENCHMARKS,
    **pft.BENCHMARKS,
    **frames.BENCHMARKS,
    **recovery.BENCHMARKS,
    **kills.BENCHMARKS,
    **shared_memory.BENCHMARKS,
    **tiers.BENCHMARKS,
}


async def run(only: str) -> int:
    chosen = {name: work for name, work in BENCHMARKS.items() if name.startswith(only)}
    if not chosen:
        print(f"no benchmark starts with {only!r}; there are:", *BENCHMARKS, file=sys.stderr)
        return 2
    commit = commit_name()
    for name, work in chosen.items():
        print(f"measuring {name} …", file=sys.stderr)
        async for measurement in work():
            print(measurement.line(commit), flush=True)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default="", metavar="PREFIX", help="names that start with this")
    sys.exit(asyncio.run(run(parser.parse_args().only)))
