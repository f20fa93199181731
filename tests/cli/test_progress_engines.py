"""Who works on the rows is told once, and a line shows what it has room for."""

import pytest

from noetl.cli.progress_live import fitted
from noetl.domain.events import (
    StageClosed,
)
from tests.cli.told_progress import LINK, STAGE, Told


def test_the_engine_and_its_link_are_told_once() -> None:
    told = Told().spark_loop(100)
    (row,) = told.progress.open.values()
    assert row.loop is not None
    assert (row.loop.served_by, told.news) == ("starting spark", [])
    told.out(1, "1")
    assert (row.loop.served_by, told.news) == ("local", [])
    told.job(2).out(2, "2")
    assert row.loop.served_by == "local"
    assert told.news == [f"a runs on spark, 2 slots: {LINK}"]
    told.out(3, "3", "spark/7/0")
    assert row.loop.served_by == "spark, 2 slots"
    told.tell(4, StageClosed(status="COMPLETED"), STAGE)
    assert told.spark_loop(100).job(5).news == []


def test_slots_that_have_taken_nothing_yet_are_starting() -> None:
    told = Told().spark_loop(100).job(1)
    (row,) = told.progress.open.values()
    assert row.loop is not None
    assert row.loop.served_by == "starting 2 slots"


def test_slots_that_are_lost_and_come_back_are_told() -> None:
    told = Told().spark_loop(100).job(1, None).out(2, "1", "spark/7/0")
    assert told.news == ["a runs on spark, 2 slots"]
    told.out(3, "2").out(4, "3")
    (row,) = told.progress.open.values()
    assert row.loop is not None
    assert row.loop.served_by == "local"
    assert told.news == ["a: no slots of spark at work; local workers go on"]
    assert told.job(5, None).news == ["a runs on spark again, after its slots were lost, 2 slots"]


@pytest.mark.parametrize(
    ("columns", "kept", "bar"),
    [(90, 4, 30), (43, 4, 8), (40, 3, 11), (20, 1, 9), (9, 0, 9), (5, 0, 0)],
)
def test_a_line_has_as_much_as_there_is_room_for(columns: int, kept: int, bar: int) -> None:
    cells = ["100 rows/s", "", "6 s left", "2 frames", "1.0 s"]
    shown, width = fitted(cells, columns)
    assert (len(shown), width) == (kept, bar)
    assert sum(len(cell) + 1 for cell in shown) + width <= columns
