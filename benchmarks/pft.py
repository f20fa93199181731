"""`pft.1x200`, `pft.2x500`, `pft.10x1000`: facilities x patients, from an API into PostgreSQL.

Each runs on the local slots and on Spark. A row is one patient and data type, all of its pages, or
one MDS detail: fetched, stored durably and counted again in the database, by frames of that engine
alone, nearly full ones, with few commands: or there is no figure. Beside it
stands a bare asyncio program that does the same requests and statements against the same servers;
`limited_by` says who of each run keeps a processor busy, and `waiting` that nobody does: then it is
the disk, or what else runs on the machine. The public Python runtime does 35 rows a second.
BENCH_PFT_ENGINES chooses engines: `local,spark`. The largest takes many minutes, and runs only when
it is asked for by its whole name.
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
from typing import TypeVar

import msgspec

from benchmarks.measurement import ROOT, Measurement, NoFigure
from benchmarks.pft_bare import BareRun, BareSetting
from benchmarks.pft_log import EngineName
from benchmarks.pft_run import PftRun, PftSetting
from noetl.servers.postgres import PostgresServer

PUBLIC_ROWS_PER_SECOND = 35.0
DOMAINS = 5
FRAME_ROWS_MEAN_MIN = 49.0
COMMAND_EVENTS_MAX = 20_000
RUN_SECONDS_MIN = 900.0
"""What a run may take; a large one as long as the public Python runtime would."""
BUSY_SHARE_MIN = 0.8
"""Of a processor: who uses so much of one is what the others wait for."""

ENGINES: list[EngineName] = msgspec.convert(
    os.environ.get("BENCH_PFT_ENGINES", "local,spark").split(","),
    list[EngineName],
)
Told = TypeVar("Told")
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


def _in_a_process(kind: type[Told], module: str, setting: BareSetting | PftSetting) -> Told:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}"],
        cwd=ROOT,
        input=msgspec.json.encode(setting),
        stdout=subprocess.PIPE,
        check=True,
        timeout=_seconds_max(setting.facilities, setting.patients),
    )
    return msgspec.json.decode(done.stdout, type=kind)


def _rows_expected(facilities: int, patients: int) -> int:
    """By the arithmetic that the API answers with."""
    command = [sys.executable, "-c", MDS_COUNT, str(facilities), str(patients)]
    told = subprocess.run(
        command, cwd=ROOT / "examples" / "pft", capture_output=True, text=True, check=True
    )
    return DOMAINS * facilities * patients + int(told.stdout)


def _seconds_max(facilities: int, patients: int) -> float:
    return max(RUN_SECONDS_MIN, _rows_expected(facilities, patients) / PUBLIC_ROWS_PER_SECOND)


def _check(run: PftRun, engine: EngineName, rows: int) -> None:
    found = {
        "wrong counts": run.wrong,
        "rows stored": run.rows - rows,
        **run.counts.faults(engine, rows),
    }
    wrong = {name: value for name, value in found.items() if value}
    rows_per_frame, commands = run.counts.rows_per_frame, run.counts.command_events
    if wrong or rows_per_frame < FRAME_ROWS_MEAN_MIN or commands >= COMMAND_EVENTS_MAX:
        seen = f"{rows_per_frame:.1f} rows per frame, {commands} command events"
        raise NoFigure(f"{engine}: {wrong}, {seen}")


def _limited_by(seconds: float, used: dict[str, float]) -> str:
    """Who keeps a processor busy, or all of them together; else the waits are the limit."""
    busiest = max(used, key=lambda name: used[name])
    if used[busiest] / seconds >= BUSY_SHARE_MIN:
        return busiest
    cpus = os.cpu_count() or 1
    is_full = sum(used.values()) / seconds >= BUSY_SHARE_MIN * cpus
    return "all processors" if is_full else "waiting"


def _measurement(name: str, run: PftRun, bare: BareRun) -> Measurement:
    def per_row(seconds: float) -> float:
        return round(1_000 * seconds / run.rows, 3)

    used = {
        "engine": run.engine_cpu_seconds,
        "spark": run.children_cpu_seconds,
        "postgres": run.postgres_cpu_seconds,
        "api": run.api_cpu_seconds,
    }
    bare_used = {
        "client": bare.client_cpu_seconds,
        "postgres": bare.postgres_cpu_seconds,
        "api": bare.api_cpu_seconds,
    }
    counts = run.counts
    cpu, bare_cpu = sum(used.values()), sum(bare_used.values())
    return Measurement(
        name=name,
        value=run.rows / run.seconds,
        unit="rows/s",
        limit=bare.rows / bare.seconds,
        limit_name="a bare asyncio program, same requests and statements",
        detail={
            "rows": run.rows,
            "seconds": round(run.seconds, 2),
            "public_rows_per_second": PUBLIC_ROWS_PER_SECOND,
            "public_ratio": round(run.rows / run.seconds / PUBLIC_ROWS_PER_SECOND, 2),
            "cpu_ms_per_row": per_row(cpu),
            **{f"{who}_cpu_ms_per_row": per_row(seconds) for who, seconds in used.items()},
            "limited_by": _limited_by(run.seconds, used),
            "bare_cpu_ms_per_row": per_row(bare_cpu),
            **{f"bare_{who}_cpu_ms_per_row": per_row(each) for who, each in bare_used.items()},
            "bare_limited_by": _limited_by(bare.seconds, bare_used),
            "cpu_ratio": round(bare_cpu / cpu, 3),
            "frames": counts.frames,
            "rows_per_frame": round(counts.rows_per_frame, 2),
            "empty_claims": counts.empty_frames,
            "claims_per_frame": counts.claims / counts.frames,
            "events": counts.events,
            "command_events": counts.command_events,
            "spark_frames": counts.spark_dispatches,
        },
    )


def _measured(setting: PftSetting, bare: BareSetting, rows: int) -> tuple[PftRun, BareRun]:
    """The bare one before and after, on one machine with different things to do; the better one."""
    before = _in_a_process(BareRun, "pft_bare", bare)
    run = _in_a_process(PftRun, "pft_run", setting)
    after = _in_a_process(BareRun, "pft_bare", bare)
    _check(run, setting.engine, rows)
    for each in (before, after):
        assert each.rows == rows, each
    return run, min(before, after, key=lambda each: each.seconds)


async def _pft(facilities: int, patients: int) -> AsyncIterator[Measurement]:
    rows = _rows_expected(facilities, patients)
    for engine in ENGINES:
        with (
            tempfile.TemporaryDirectory(prefix="noetl-bench-") as folder,
            PostgresServer(Path(folder) / "postgres") as postgres,
            _api() as (api, api_pid),
        ):
            bare = BareSetting(
                facilities=facilities,
                patients=patients,
                api=api,
                api_pid=api_pid,
                dsn=postgres.create_database("bare"),
                postgres_pid=postgres.pid,
            )
            setting = PftSetting(
                engine=engine,
                facilities=facilities,
                patients=patients,
                api=api,
                api_pid=api_pid,
                dsn=postgres.create_database("pft"),
                postgres_pid=postgres.pid,
                seconds_max=_seconds_max(facilities, patients),
            )
            run, beside = await asyncio.to_thread(_measured, setting, bare, rows)
        yield _measurement(f"pft.{facilities}x{patients}.{engine}", run, beside)


BENCHMARKS: dict[str, Callable[[], AsyncIterator[Measurement]]] = {
    "pft.1x200": lambda: _pft(1, 200),
    "pft.2x500": lambda: _pft(2, 500),
    "pft.10x1000": lambda: _pft(10, 1_000),
}
ON_REQUEST = frozenset({"pft.10x1000"})
