"""What cannot be done, or not be said, ends as a failure that the desk hears of."""

import pytest

from noetl.kernel.errors import (
    InvariantBroken,
    PayloadMissing,
    PlaybookInvalid,
    StoreUnavailable,
    ValueNotPlain,
)
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.runtime.worker import WorkerCounts
from tests.unit.runtime.worker_scene import Behaving, Gate, Scene, command, only_command


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def test_a_fault_of_the_program_is_reported_without_its_words() -> None:
    async def run(job: Job, _journal: Journal, _hold: Hold) -> RowResult:
        raise LookupError("the password is hunter2")

    scene = Scene(Behaving(run))
    async with scene.running():
        await scene.do(command("a"))

    error = only_command(scene.desk).error
    assert error is not None
    assert (error.kind, error.code, error.retryable) == ("unknown", "LookupError", False)
    assert "LookupError at test_worker_failures.py:" in error.message
    assert "hunter2" not in error.message
    assert scene.worker.counts == WorkerCounts(reported=1, broken=1)


@pytest.mark.parametrize(
    ("trouble", "kind", "retryable"),
    [
        (PayloadMissing("noetl://gone"), "missing_reference", True),
        (PlaybookInvalid(("3:1: error: no steps",)), "schema", False),
        (InvariantBroken("there are two of them"), "unknown", False),
    ],
)
async def test_a_playbook_that_cannot_be_read_fails_the_work(
    gate: Gate, trouble: Exception, kind: str, retryable: bool
) -> None:
    scene = Scene(Behaving(gate))
    scene.playbooks.trouble = [StoreUnavailable("come back later"), trouble]
    async with scene.running():
        await scene.do(command("a"))
        await scene.clock.advance(1)

    error = only_command(scene.desk).error
    assert error is not None
    assert (error.kind, error.retryable) == (kind, retryable)


async def test_a_step_that_the_playbook_lacks_fails_the_work(gate: Gate) -> None:
    scene = Scene(Behaving(gate), steps="- step: other\n  tool: {kind: noop}")
    async with scene.running():
        await scene.do(command("a"))

    error = only_command(scene.desk).error
    assert error is not None
    assert "'load' that the playbook has not" in error.message


async def test_a_report_that_the_desk_refuses_becomes_a_failure(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    scene.desk.trouble = {"report": [ValueNotPlain("$.value", "is a set")]}
    async with scene.running():
        await scene.do(command("a"))
        await gate.let_through()

    error = only_command(scene.desk).error
    assert error is not None
    assert error.kind == "schema"


async def test_a_failure_that_the_desk_refuses_too_frees_the_slot(gate: Gate) -> None:
    scene = Scene(Behaving(gate), slots=1)
    refusal = ValueNotPlain("$.value", "is a set")
    scene.desk.trouble = {"report": [refusal, refusal]}
    async with scene.running():
        await scene.do(command("a"), command("b"))
        await gate.let_through(2)

    assert only_command(scene.desk).command_id == "b"
    assert scene.worker.counts == WorkerCounts(reported=1, refused=1)


async def test_a_broken_invariant_at_the_desk_stops_the_worker(gate: Gate) -> None:
    scene = Scene(Behaving(gate))
    scene.desk.trouble = {"report": [InvariantBroken("the log runs backwards")]}
    async with scene.running() as running:
        await scene.do(command("a"))
        await gate.let_through()

        with pytest.raises(InvariantBroken):
            await running
