"""Seats of slots: whose a stage is while they speak, when they fall silent, and who is the real."""

import pytest

from noetl.domain.playbook.needs import ANY
from noetl.domain.work import StageServed, WorkerIdentity
from noetl.kernel.errors import StageOver
from noetl.kernel.ids import ExecutionId, StageId, WorkerId
from noetl.kernel.instant import Instant, plus
from noetl.runtime.seat import SILENT_SECONDS
from noetl.runtime.seats import Need, Seats

NOW = Instant("2026-01-01T00:00:00.000000Z")
STAGE = StageId("7")
NEED = Need(ANY, STAGE)
LOCAL = WorkerIdentity(worker_id=WorkerId("local"), boot_id="a", slots=1)


def slot(boot: int, number: int = 0) -> WorkerIdentity:
    return WorkerIdentity(
        worker_id=WorkerId(f"spark/{STAGE}/{number}"),
        boot_id=str(boot),
        slots=1,
        serves=StageServed(execution_id=ExecutionId("1"), stage_id=STAGE),
    )


def seated(now: Instant, *workers: WorkerIdentity) -> Seats:
    seats = Seats()
    for worker in workers:
        seats.seat(worker, now).free = 1
    return seats


def test_others_leave_a_stage_to_its_slots_while_these_are_heard() -> None:
    seats = seated(NOW, slot(1))
    later = plus(NOW, seconds=SILENT_SECONDS)
    seats.seat(LOCAL, later).free = 1
    assert seats.free(later, NEED) is None
    past = plus(later, seconds=0.001)
    found = seats.free(past, NEED)
    assert found is not None
    assert found.worker == LOCAL


def test_one_slot_that_is_heard_is_enough() -> None:
    seats = seated(NOW, slot(1), slot(1, number=1))
    later = plus(NOW, seconds=60)
    seats.hear(slot(1, number=1).worker_id, later)
    seats.seat(LOCAL, later).free = 1
    assert seats.free(later, NEED) is None


def test_a_released_stage_is_everybodys() -> None:
    seats = seated(NOW, slot(1), LOCAL)
    assert seats.release(STAGE) == {slot(1).worker_id}
    found = seats.free(NOW, NEED)
    assert found is not None
    assert found.worker == LOCAL
    assert seats.release(STAGE) == frozenset()


def test_an_earlier_incarnation_gets_no_seat_any_more() -> None:
    seats = seated(NOW, slot(9))
    seats.seat(slot(10), NOW)
    with pytest.raises(StageOver):
        seats.seat(slot(9), NOW)
    assert seats.is_current(slot(10).worker_id, "10")


def test_a_worker_of_no_stage_may_come_back_under_any_boot() -> None:
    seats = seated(NOW, WorkerIdentity(worker_id=WorkerId("far"), boot_id="9", slots=1))
    again = WorkerIdentity(worker_id=WorkerId("far"), boot_id="3", slots=1)
    assert seats.seat(again, NOW).worker.boot_id == "3"
