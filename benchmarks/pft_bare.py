"""The PFT workload without a runtime: one asyncio process, one HTTP session, one pool.

python -m benchmarks.pft_bare < SETTING, as JSON

It asks the same server for the same pages, as many at once, and runs the statements of the playbook
as they stand there, each committed before the next row is taken. It keeps nothing of what it did,
tries nothing twice and cannot go on after a crash: what is left is what the work itself costs.
"""

import asyncio
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import asyncpg
import msgspec
import yaml

from benchmarks.measurement import ROOT
from benchmarks.process_tree import tree_cpu_seconds

PLAYBOOK = ROOT / "examples" / "pft" / "pft_postgres.yaml"
STATEMENTS_AT_ONCE = 10  # connections of a pool, as the tool has them
WARM_PATIENTS = 5

_NAME = re.compile(r"(?<!:):([a-z]\w*)")
_FRAME_ROWS = re.compile(r"\{\{ __frame_max_rows[^}]*\}\}")

Row = Mapping[str, Any]


class BareSetting(msgspec.Struct):
    facilities: int
    patients: int
    api: str
    api_pid: int
    dsn: str
    postgres_pid: int


class BareRun(msgspec.Struct):
    seconds: float
    client_cpu_seconds: float
    postgres_cpu_seconds: float
    api_cpu_seconds: float
    rows: int


class Sql(NamedTuple):
    """A statement of the playbook with numbers for the names of its values."""

    text: str
    names: tuple[str, ...]

    @classmethod
    def of(cls, written: str) -> "Sql":
        names = tuple(dict.fromkeys(_NAME.findall(written)))
        numbered = _NAME.sub(lambda found: f"${names.index(found[1]) + 1}", written)
        return cls(numbered, names)

    def values(self, given: Row) -> list[Any]:
        return [given[name] for name in self.names]


class Loop(NamedTuple):
    name: str
    claim: str
    save: Sql
    frames_at_once: int
    frame_rows: int
    rows_at_once: int


class Harvest:
    def __init__(self, api: str, session: aiohttp.ClientSession, pool: "asyncpg.Pool[Any]") -> None:
        self._api = api
        self._session = session
        self._pool = pool
        playbook = yaml.safe_load(PLAYBOOK.read_text())
        self._steps = {step["step"]: step for step in playbook["workflow"]}
        self._workload = playbook["workload"]

    async def run(self, facilities: int, patients: int) -> int:
        """How many rows there are when all is done."""
        await self._pool.execute(self._steps["prepare"]["tool"]["query"])
        enqueue = Sql.of(self._steps["enqueue"]["tool"][1]["query"].rstrip().rstrip(";"))
        for facility in range(1, facilities + 1):
            told = await self._get(f"/facilities/{facility}/patients/{patients}")
            given = {"facility": facility, "patients": _json(told["patients"])}
            await self._pool.execute(enqueue.text, *enqueue.values(given))
        for name, step in self._steps.items():
            if "cursor" in step.get("loop", {}):
                await self._loop(self._loop_of(name), _details if name == "mds_details" else _pages)
        count = "SELECT (SELECT count(*) FROM pft_records) + (SELECT count(*) FROM pft_mds)"
        rows: int = await self._pool.fetchval(count)
        return rows

    def _loop_of(self, name: str) -> Loop:
        step = self._steps[name]
        frame = step["loop"]["spec"]["frame"]
        return Loop(
            name,
            _FRAME_ROWS.sub(str(frame["max_rows"]), step["loop"]["cursor"]["claim"]),
            Sql.of(step["tool"][1]["query"]),
            self._workload["pft_http_concurrency"],
            frame["max_rows"],
            self._workload["rows_at_once"],
        )

    async def _loop(self, loop: Loop, fetch: "Fetch") -> None:
        async def frames() -> None:
            while claimed := await self._pool.fetch(loop.claim):
                rows = iter(claimed)
                await asyncio.gather(*(each(rows) for _ in range(loop.rows_at_once)))

        async def each(rows: Any) -> None:
            for row in rows:
                given = await fetch(self._get, row)
                await self._pool.execute(loop.save.text, *loop.save.values(given))

        await asyncio.gather(*(frames() for _ in range(loop.frames_at_once)))

    async def _get(self, path: str) -> Any:
        async with self._session.get(self._api + path) as response:
            assert response.ok, response
            return msgspec.json.decode(await response.read())


Get = Callable[[str], Awaitable[Any]]
Fetch = Callable[[Get, Row], Awaitable[Row]]


async def _pages(get: Get, row: Row) -> Row:
    records: list[Any] = []
    page, has_more = 0, True
    while has_more:
        page += 1
        told = await get(f"/patients/{row['patient_id']}/{row['data_type']}?page={page}")
        records += told["data"]
        has_more = told["paging"]["hasMore"]
    return {
        "facility": row["facility_id"],
        "patient": row["patient_id"],
        "type": row["data_type"],
        "pages": page,
        "records": _json(records),
    }


async def _details(get: Get, row: Row) -> Row:
    told = await get(f"/mds/{row['id']}")
    return {"id": row["id"], "facility": row["facility_id"], "score": told["score"]}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


async def _as_it_is(_connection: object) -> None:
    """These statements leave nothing in a session; cleaning it would be another round trip."""


@asynccontextmanager
async def _harvest(setting: BareSetting) -> AsyncIterator[Harvest]:
    pool = asyncpg.create_pool(
        setting.dsn, min_size=1, max_size=STATEMENTS_AT_ONCE, reset=_as_it_is
    )
    async with aiohttp.ClientSession() as session, pool:
        yield Harvest(setting.api, session, pool)


async def measured(setting: BareSetting) -> BareRun:
    def used() -> tuple[float, float, float]:
        postgres, api = map(tree_cpu_seconds, (setting.postgres_pid, setting.api_pid))
        return time.process_time(), postgres, api

    async with _harvest(setting) as harvest:
        await harvest.run(1, WARM_PATIENTS)
        started, before = time.perf_counter(), used()
        rows = await harvest.run(setting.facilities, setting.patients)
        seconds, after = time.perf_counter() - started, used()
    client, postgres, api = (end - begin for begin, end in zip(before, after, strict=True))
    return BareRun(seconds, client, postgres, api, rows)


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=BareSetting)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(measured(given))))
