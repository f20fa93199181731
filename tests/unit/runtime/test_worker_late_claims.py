"""Work from a claim that waited long: by our clock its lease may be over before it begins."""

import pytest

from noetl.domain.work import LeaseAnswer
from noetl.kernel.errors import ClaimLost, LogUnavailable
from noetl.kernel.instant import plus
from noetl.runtime.worker import WorkerCounts
from tests.unit.runtime.worker_scene import (
    LATER,
    LEASE_SECONDS,
    Behaving,
    Gate,
    Scene,
    command,
    only_command,
)

GONE = ClaimLost("the work", "has another holder")


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_work_from_a_claim_that_waited_long_is_confirmed_before_it_starts(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    async with scene.running():
        await scene.clock.advance(100)  # the claim waits all this time
        await scene.do(command("a"))

        assert scene.desk.said == ["register", "claim", "heartbeat"]
        assert gate.inside == ["a"]


async def test_work_from_a_claim_that_waited_long_is_dropped_when_it_is_gone(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    scene.desk.trouble = {"heartbeat": [GONE]}
    async with scene.running():
        await scene.clock.advance(100)
        await scene.do(command("a"))

        assert gate.inside == []
        assert scene.worker.counts == WorkerCounts(lost=1)
        assert scene.worker.free_slots == 1


async def test_late_work_waits_until_the_desk_renews_its_lease(gate: Gate) -> None:
    """Its lease is young by the desk's clock: there is nothing to renew yet."""
    scene = Scene(Behaving(gate), slots=1)
    scene.desk.answer = LeaseAnswer(next_action="continue", lease_until=LATER)
    async with scene.running():
        await scene.clock.advance(100)
        await scene.do(command("a"))
        assert gate.inside == []

        renewed = plus(LATER, seconds=3)
        scene.desk.answer = LeaseAnswer(next_action="continue", lease_until=renewed)
        await scene.clock.advance(3)
        assert gate.inside == ["a"]
        await gate.let_through()

    assert only_command(scene.desk).error is None


@pytest.mark.parametrize(("failures", "starts"), [(5, True), (99, False)])
async def test_late_work_is_confirmed_while_its_lease_can_last(
    gate: Gate, failures: int, starts: bool
) -> None:
    scene = Scene(Behaving(gate), slots=1)
    away = LogUnavailable("the log is away")
    async with scene.running() as running:
        await scene.clock.advance(100)
        scene.desk.trouble = {"heartbeat": [away] * failures}
        await scene.do(command("a"))
        await scene.clock.advance(2 * LEASE_SECONDS)

        assert gate.inside == (["a"] if starts else [])
        assert scene.worker.counts.lost == (0 if starts else 1)
        assert not running.done()
