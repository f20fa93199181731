"""`python -m benchmarks [--only PREFIX]`: one JSON line per figure on stdout, nothing else."""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping

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
from benchmarks.measurement import Measurement, NoFigure, commit_name

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


ON_REQUEST = pft.ON_REQUEST
"""They run when `--only` is their whole name."""


async def run(only: str, benchmarks: Mapping[str, Benchmark] = BENCHMARKS) -> int:
    """One that has no figure says why; the others are measured all the same."""
    chosen = {
        name: work
        for name, work in benchmarks.items()
        if name == only or (name.startswith(only) and name not in ON_REQUEST)
    }
    if not chosen:
        print(f"no benchmark starts with {only!r}; there are:", *benchmarks, file=sys.stderr)
        return 2
    commit, code = commit_name(), 0
    for name, work in chosen.items():
        print(f"measuring {name} …", file=sys.stderr)
        try:
            async for measurement in work():
                print(measurement.line(commit), flush=True)
        except (NoFigure, AssertionError, subprocess.SubprocessError) as error:
            print(f"no figure of {name}: {error}", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", default="", metavar="PREFIX", help="names that start with this")
    sys.exit(asyncio.run(run(parser.parse_args().only)))
