"""Rows that are claimed from a table of work, in every database that can be claimed from."""

from pathlib import Path

import pytest

from noetl.bootstrap.engine import Engine
from noetl.domain.events import FrameStarted
from tests.cursors.looping import (
    Bench,
    Dialect,
    duckdb_dialect,
    postgres_dialect,
    sqlite_dialect,
)
from tests.stages.engine_case import EngineCase
from tests.stages.stage_scene import events_of, said, serving

ROWS = 60
POSTGRES = pytest.param("postgres", marks=pytest.mark.servers)


class CursorCases(EngineCase):
    @pytest.fixture(params=["sqlite", "duckdb", POSTGRES])
    def dialect(self, request: pytest.FixtureRequest, tmp_path: Path) -> Dialect:
        match request.param:
            case "sqlite":
                return sqlite_dialect(tmp_path)
            case "duckdb":
                return duckdb_dialect(tmp_path)
            case _:
                return postgres_dialect(request.getfixturevalue("postgres_dsn"))

    async def test_every_row_is_claimed_and_worked_on_once(
        self, engine: Engine, dialect: Dialect
    ) -> None:
        for credential in dialect.credentials:
            await engine.platform.credentials.put(engine.settings.scope, credential)
        frame = {"max_rows": 5, "row_concurrency": 5}
        spec = {"mode": "cursor", "engine": self.engine_name, "max_in_flight": 2, "frame": frame}
        async with serving() as target:
            target.together = 10  # nobody is answered before two frames have claimed rows
            target.opens.set()
            ask = {"name": "ask", "kind": "http", "url": f"{target.url}/ask", "timeout": 120}
            tell = {"name": "tell", "kind": "http", "url": f"{target.url}/tell", "method": "POST"}
            tasks = [
                {**ask, "params": {"number": "{{ iter.row.id }}"}},
                {**tell, "json": {"number": "{{ iter.row.id }}"}},
                {"name": "answer", "kind": "noop", "result": "{{ ask.data.square }}"},
            ]
            bench = Bench(engine)
            execution = await bench.start(dialect.playbook(spec, tasks), count=ROWS)
            result = await said(engine, execution)
        assert sorted(result["results"]) == [number * number for number in range(1, ROWS + 1)]
        assert target.asked == dict.fromkeys(range(1, ROWS + 1), 1)
        assert len(target.told) == ROWS
        assert set(target.told.values()) == {1}
        assert result["stats"]["succeeded"] == ROWS
        events = await events_of(engine, execution)
        claims = [each for each in events if isinstance(each, FrameStarted) and each.rows]
        assert len(claims) == ROWS // 5
        assert len({each.transaction_id for each in claims}) == len(claims)
        await self.check_workers(engine, execution)
