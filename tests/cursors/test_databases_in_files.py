"""Loops over tables of work in SQLite and DuckDB files."""

from pathlib import Path

import pytest

from noetl.kernel.scope import DEFAULT_SCOPE
from tests.cursors.looping import Dialect, duckdb_dialect, open_bench, seen_in, sqlite_dialect
from tests.cursors.promises import TEN, CursorLoops


class TestSqlite(CursorLoops):
    @pytest.fixture
    def dialect(self, tmp_path: Path) -> Dialect:
        return sqlite_dialect(tmp_path)


class TestDuckdb(CursorLoops):
    @pytest.fixture
    def dialect(self, tmp_path: Path) -> Dialect:
        return duckdb_dialect(tmp_path)


SPEC = {"mode": "cursor", "max_in_flight": 2, "frame": {"max_rows": 1}}
SLOW = {"name": "slow", "kind": "wait", "seconds": 0.2}


async def test_a_pause_lets_claimed_rows_end_and_claims_no_more(tmp_path: Path) -> None:
    dialect = sqlite_dialect(tmp_path)
    async with open_bench(tmp_path / "home", dialect) as bench:
        control = bench.engine.control
        insert = dialect.sql("INSERT INTO target VALUES ({{ iter.row.id }}, '')", name="insert")
        execution = await bench.start(dialect.playbook(SPEC, [SLOW, insert]))
        while not [each for each in await bench.events(execution) if _has_rows(each.event)]:
            await bench.engine.clock.sleep(0.02)
        await control.pause(DEFAULT_SCOPE, execution)
        running = await bench.engine.coordinator.load(execution)
        while running.state.frames or not running.is_recorded:
            await bench.engine.clock.sleep(0.02)
        paused_at = len(await bench.events(execution))
        await bench.engine.clock.sleep(0.3)
        assert len(await bench.events(execution)) == paused_at

        await control.resume(DEFAULT_SCOPE, execution)
        ending = await bench.ending(execution)

    assert ending.status == "COMPLETED"
    assert seen_in(ending)["target"] == TEN


async def test_a_cancelled_loop_that_is_retried_works_on_what_it_had_claimed(
    tmp_path: Path,
) -> None:
    dialect = sqlite_dialect(tmp_path)
    async with open_bench(tmp_path / "home", dialect) as bench:
        control = bench.engine.control
        insert = dialect.sql("INSERT INTO target VALUES ({{ iter.row.id }}, '')", name="insert")
        execution = await bench.start(dialect.playbook(SPEC, [SLOW, insert]))
        while not [each for each in await bench.events(execution) if _has_rows(each.event)]:
            await bench.engine.clock.sleep(0.02)
        await control.cancel(DEFAULT_SCOPE, execution)
        assert (await bench.ending(execution)).status == "CANCELLED"

        await control.retry(DEFAULT_SCOPE, execution)
        ending = await bench.ending(execution)

    assert ending.status == "COMPLETED"
    # What a row was doing when it was cancelled is in doubt, and done again.
    assert sorted({*seen_in(ending)["target"]}) == TEN


async def test_a_loop_leaves_no_names_of_claims_behind(tmp_path: Path) -> None:
    insert = "INSERT INTO target VALUES ({{ iter.row.id }}, '')"
    names = "SELECT count(*) AS left_over FROM noetl_cursor_claims"
    for dialect in (sqlite_dialect(tmp_path), duckdb_dialect(tmp_path)):
        playbook = dialect.playbook(SPEC, [dialect.sql(insert, name="insert")])
        playbook["workflow"][3:] = [
            {"step": "end", "tool": dialect.sql(names)},
        ]
        playbook["workflow"][2]["next"] = "end"
        async with open_bench(tmp_path / "home", dialect) as bench:
            ending = await bench.ending(await bench.start(playbook))
        assert ending.status == "COMPLETED"
        assert "'left_over': 0" in str(ending.result), ending.result


async def test_max_iterations_bounds_the_frames(tmp_path: Path) -> None:
    dialect = sqlite_dialect(tmp_path)
    insert = dialect.sql("INSERT INTO target VALUES ({{ iter.row.id }}, '')", name="insert")
    playbook = dialect.playbook(SPEC, [insert], options={"max_iterations": 4})
    async with open_bench(tmp_path / "home", dialect) as bench:
        seen = await bench.result(playbook)

    assert seen["target"] == TEN[:4]


def _has_rows(event: object) -> bool:
    return bool(getattr(event, "transaction_id", None))
