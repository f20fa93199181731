"""`pft.1x200`, `pft.2x500`: facilities x patients harvested from an API into a durable PostgreSQL.

Each runs on the local slots and on Spark. A row is one patient and data type, all of its pages, or
one MDS detail: fetched, stored and counted again in the database, or there is no figure. The public
Python runtime does 35 of them a second. BENCH_PFT_ENGINES chooses engines: `local,spark`.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from benchmarks.measurement import ROOT, Measurement
from benchmarks.pft_run import PftRun, PftSetting
from noetl.servers.postgres import PostgresServer

PUBLIC_ROWS_PER_SECOND = 35.0
DOMAINS = 5
FRAME_ROWS_MEAN_MIN = 49.0
RUN_SECONDS_MAX = 900
ENGINES: list[Literal["local", "spark"]] = msgspec.convert(
    os.environ.get("BENCH_PFT_ENGINES", "local,spark").split(","),
    list[Literal["local", "spark"]],
)
MDS_COUNT = "import sys; from counts import mds_count; print(mds_count(*map(int, sys.argv[1:])))"


@contextmanager
def _api() -> Iterator[tuple[str, int]]:
    """The API of the examples, and its process."""
    command = [sys.executable, "examples/pft/api_server.py", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None
            yield found[0], server.pid
        finally:
            server.terminate()


def _run(setting: PftSetting) -> PftRun:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pft_run"],
        cwd=ROOT,
        input=msgspec.json.encode(setting),
        stdout=subprocess.PIPE,
        check=True,
        timeout=RUN_SECONDS_MAX,
    )
    return msgspec.json.decode(done.stdout, type=PftRun)


def _rows_expected(facilities: int, patients: int) -> int:
    """By the arithmetic that the API answers with."""
    command = [sys.executable, "-c", MDS_COUNT, str(facilities), str(patients)]
    told = subprocess.run(
        command, cwd=ROOT / "examples" / "pft", capture_output=True, text=True, check=True
    )
    return DOMAINS * facilities * patients + int(told.stdout)


def _check(run: PftRun, rows: int) -> None:
    """Nothing missing, nothing twice, and one claim for each frame."""
    found = {
        "wrong counts": run.wrong,
        "rows stored": run.rows - rows,
        "rows of frames": run.frame_rows - rows,
        "failed rows": run.failed_rows,
        "claims more than frames": run.claims - run.frames,
        "frames handed out again": run.dispatches - run.frames,
    }
    wrong = {name: value for name, value in found.items() if value}
    if wrong or run.frame_rows / run.frames < FRAME_ROWS_MEAN_MIN:
        raise AssertionError(f"{wrong}, {run.frame_rows / run.frames:.1f} rows per frame")


def _measurement(name: str, run: PftRun) -> Measurement:
    def per_row(seconds: float) -> float:
        return round(1_000 * seconds / run.rows, 3)

    used = (
        run.engine_cpu_seconds,
        run.children_cpu_seconds,
        run.postgres_cpu_seconds,
        run.api_cpu_seconds,
    )
    return Measurement(
        name=name,
        value=run.rows / run.seconds,
        unit="rows/s",
        limit=PUBLIC_ROWS_PER_SECOND,
        limit_name="the public Python runtime",
        detail={
            "rows": run.rows,
            "seconds": round(run.seconds, 2),
            "cpu_ms_per_row": per_row(sum(used)),
            "engine_cpu_ms_per_row": per_row(run.engine_cpu_seconds),
            "spark_cpu_ms_per_row": per_row(run.children_cpu_seconds),
            "postgres_cpu_ms_per_row": per_row(run.postgres_cpu_seconds),
            "api_cpu_ms_per_row": per_row(run.api_cpu_seconds),
            "frames": run.frames,
            "rows_per_frame": round(run.frame_rows / run.frames, 2),
            "empty_claims": run.empty_frames,
            "claims_per_frame": run.claims / run.frames,
            "events": run.events,
            "command_events": run.command_events,
            "spark_frames": run.spark_frames,
        },
    )


async def _pft(facilities: int, patients: int) -> AsyncIterator[Measurement]:
    rows = _rows_expected(facilities, patients)
    for engine in ENGINES:
        with (
            tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder,
            PostgresServer(Path(folder) / "postgres") as postgres,
            _api() as (api, api_pid),
        ):
            setting = PftSetting(
                engine=engine,
                facilities=facilities,
                patients=patients,
                api=api,
                api_pid=api_pid,
                dsn=postgres.create_database("pft"),
                postgres_pid=postgres.pid,
            )
            run = await asyncio.to_thread(_run, setting)
        _check(run, rows)
        yield _measurement(f"pft.{facilities}x{patients}.{engine}", run)


BENCHMARKS: dict[str, Callable[[], AsyncIterator[Measurement]]] = {
    "pft.1x200": lambda: _pft(1, 200),
    "pft.2x500": lambda: _pft(2, 500),
}
