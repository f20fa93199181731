"""What a loop over a cursor comes to, whichever database it claims from."""

from pathlib import Path
from typing import Any

from noetl.domain.events import FrameCommitted, FrameStarted
from tests.cursors.looping import Dialect, open_bench

TEN = list(range(1, 11))


class CursorLoops:
    """A database passes by subclassing, and giving a `dialect`."""

    async def test_every_row_is_claimed_and_worked_on_once(
        self, tmp_path: Path, dialect: Dialect
    ) -> None:
        spec = {"mode": "cursor", "max_in_flight": 2, "frame": {"max_rows": 3}}
        async with open_bench(tmp_path / "home", dialect) as bench:
            seen = await bench.result(dialect.playbook(spec, [_insert(dialect), _value()]))

        assert seen["target"] == TEN
        assert sorted(row["id"] for row in seen["results"]) == TEN
        assert seen["stats"] == _stats(total=10, succeeded=10)

    async def test_rows_know_their_place(self, tmp_path: Path, dialect: Dialect) -> None:
        spec = {"mode": "cursor", "max_in_flight": 1, "frame": {"max_rows": 4}}
        async with open_bench(tmp_path / "home", dialect) as bench:
            seen = await bench.result(dialect.playbook(spec, [_value()]))

        places = [(row["frame"], row["row"], row["index"]) for row in seen["results"]]
        assert places == [(index // 4, index % 4, index) for index in range(10)]

    async def test_work_that_a_row_leaves_behind_is_claimed_by_the_same_loop(
        self, tmp_path: Path, dialect: Dialect
    ) -> None:
        spec = {"mode": "cursor", "max_in_flight": 3, "frame": {"max_rows": 2}}
        more = dialect.sql(
            "INSERT INTO work SELECT {{ iter.row.id }} + 100, 'pending'"
            " WHERE {{ iter.row.id }} < 300",
            name="more",
        )
        async with open_bench(tmp_path / "home", dialect) as bench:
            playbook = dialect.playbook(spec, [more, _insert(dialect), _value()])
            seen = await bench.result(playbook, count=3)

        assert seen["target"] == [
            base + number for base in (0, 100, 200, 300) for number in (1, 2, 3)
        ]

    async def test_a_whole_frame_is_one_run_of_the_pipeline(
        self, tmp_path: Path, dialect: Dialect
    ) -> None:
        spec = {"mode": "cursor", "max_in_flight": 1, "frame": {"max_rows": 4, "process": "frame"}}
        value = {
            "rows": "{{ iter.row_rows | map(attribute='id') | list }}",
            "same": "{{ iter.row == frame.rows }}",
            "place": "{{ [frame.index, frame.base_index, frame.row_count] }}",
            "most": "{{ frame.policy.max_rows }}",
        }
        tasks = [{"name": "value", "kind": "noop", "result": value}]
        async with open_bench(tmp_path / "home", dialect) as bench:
            seen = await bench.result(dialect.playbook(spec, tasks))

        frames = [seen["results"][first] for first in (0, 4, 8)]
        assert [frame["rows"] for frame in frames] == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]
        assert all(frame["same"] for frame in frames)
        assert [frame["place"] for frame in frames] == [[0, 0, 4], [1, 4, 4], [2, 8, 2]]
        assert {frame["most"] for frame in frames} == {4}

    async def test_failed_rows_are_counted_and_the_step_succeeds(
        self, tmp_path: Path, dialect: Dialect
    ) -> None:
        spec = {"mode": "cursor", "max_in_flight": 2, "frame": {"max_rows": 3}}
        wrong = dialect.sql("SELECT 1 FROM {{ 'nowhere' if iter.row.id == 4 else 'work' }}")
        async with open_bench(tmp_path / "home", dialect) as bench:
            seen = await bench.result(dialect.playbook(spec, [wrong, _insert(dialect)]))

        assert seen["target"] == [number for number in TEN if number != 4]
        assert seen["stats"] == _stats(total=10, succeeded=9, failed=1)

    async def test_a_claim_that_cannot_run_fails_the_step_and_says_why(
        self, tmp_path: Path, dialect: Dialect
    ) -> None:
        playbook = dialect.playbook({"mode": "cursor"}, [_value()], claim="SELECT id FROM nowhere")
        async with open_bench(tmp_path / "home", dialect) as bench:
            ending = await bench.ending(await bench.start(playbook))

        assert ending.status == "FAILED"
        assert ending.error is not None
        assert "nowhere" in ending.error.message

    async def test_the_log_has_the_rows_before_the_frame_works_on_them(
        self, tmp_path: Path, dialect: Dialect
    ) -> None:
        spec = {"mode": "cursor", "max_in_flight": 1, "frame": {"max_rows": 5}}
        async with open_bench(tmp_path / "home", dialect) as bench:
            execution = await bench.start(dialect.playbook(spec, [_value()]))
            assert (await bench.ending(execution)).status == "COMPLETED"
            events = await bench.events(execution)

        starts = [each.event for each in events if isinstance(each.event, FrameStarted)]
        commits = [each.event for each in events if isinstance(each.event, FrameCommitted)]
        assert [event.rows for event in starts] == [
            [{"id": number} for number in TEN[:5]],
            [{"id": number} for number in TEN[5:]],
            [],
        ]
        assert [event.row_count for event in commits] == [5, 5, 0]


def _insert(dialect: Dialect) -> dict[str, Any]:
    query = "INSERT INTO target VALUES ({{ iter.row.id }}, '{{ _index }}')"
    return dialect.sql(query, name="insert")


def _value() -> dict[str, Any]:
    place = {
        "id": "{{ iter.row.id }}",
        "frame": "{{ _frame_index }}",
        "row": "{{ _frame_row_index }}",
        "index": "{{ iter._index }}",
    }
    return {"name": "value", "kind": "noop", "result": place}


def _stats(total: int, succeeded: int, failed: int = 0) -> dict[str, int]:
    return {
        "total": total,
        "succeeded": succeeded,
        "success": succeeded,
        "failed": failed,
        "skipped": 0,
        "broken": 0,
    }
