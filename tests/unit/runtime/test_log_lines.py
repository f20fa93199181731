"""What happens to executions and workers is told once, without any of their data."""

import logging
from typing import Any

import pytest

from noetl.domain.events.values import Failure
from noetl.domain.work import WorkerIdentity
from noetl.kernel.errors import ClaimLost, LogUnavailable
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.control import cancel_tree
from noetl.runtime.log_lines import tell_events
from noetl.testing.desk_words import CHAIN, ROWS, beat, ended, failed, said_to, worker
from tests.unit.runtime.desk_scene import ATTEMPTS_MAX, LEASE_SECONDS, Scene
from tests.unit.runtime.obedient_log import ObedientLog

SECRET = "tulip-4711"


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> Scene:
    caplog.set_level(logging.DEBUG, "noetl")
    scene = Scene()
    scene.coordinator.listeners.append(tell_events)
    return scene


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def named(caplog: pytest.LogCaptureFixture, message: str) -> dict[str, Any]:
    (record,) = [each for each in caplog.records if each.getMessage() == message]
    names: dict[str, Any] = vars(record)["about"]
    return names


async def test_an_execution_is_told_when_it_begins_and_when_it_ends(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    execution = await scene.start(CHAIN)
    await scene.run_to_the_end(execution)

    assert told(caplog) == ["execution accepted", "execution completed"]
    assert named(caplog, "execution accepted") == {"execution_id": execution, "path": "desk/chain"}


async def test_what_an_execution_carries_is_never_told(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    execution = await scene.start(CHAIN, password=SECRET)
    work = await scene.claim_one()
    failure = Failure(kind="auth", message=f"{SECRET} was refused")
    await scene.report(failed(work, worker(), failure))

    assert await scene.status(execution) == "FAILED"
    assert named(caplog, "execution failed")["error_kind"] == "auth"
    assert SECRET not in str([vars(record) for record in caplog.records])


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_a_lease_that_expires_is_told_with_who_had_it(
    scene: Scene, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    execution = await scene.start(text, count=1)
    lost = await scene.claim_one()
    await scene.pass_time(2 * LEASE_SECONDS)

    names = named(caplog, "lease expired; the work is handed out again")
    assert names == {"execution_id": execution, "step": lost.step, "worker": "worker"}
    await scene.claim_one(by=worker("other"))
    again = [each for each in told(caplog) if "handed out again" in each]
    assert len(again) == 2

    assert await said_to(scene.report(ended(lost, worker()))) == "lost"
    (fenced,) = [each for each in caplog.records if each.getMessage().startswith("worker fenced")]
    assert vars(fenced)["about"] == {"execution_id": execution, "worker": "worker"}
    assert fenced.levelname == "WARNING"


@pytest.mark.parametrize("text", [CHAIN, ROWS], ids=["command", "frame"])
async def test_a_heartbeat_that_crosses_with_its_report_is_nothing_to_tell(
    scene: Scene, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    await scene.start(text, count=2)
    work = await scene.claim_one()
    await scene.report(ended(work, worker()))
    with pytest.raises(ClaimLost):
        await scene.desk.heartbeat(beat(work, worker()))

    (late,) = [each for each in caplog.records if each.getMessage().startswith("worker came late")]
    assert late.levelname == "DEBUG"


async def test_a_report_after_the_execution_was_cancelled_is_nothing_to_tell(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    await cancel_tree(scene.coordinator, execution, None)
    assert await said_to(scene.report(ended(work, worker()))) == "lost"

    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


async def test_a_heartbeat_for_what_another_worker_holds_is_a_warning(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.start(CHAIN)
    lost = await scene.claim_one()
    await scene.pass_time(2 * LEASE_SECONDS)
    await scene.claim_one(by=worker("other"))
    with pytest.raises(ClaimLost):
        await scene.desk.heartbeat(beat(lost, worker()))

    warned = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert warned[-1].startswith("worker fenced off")


async def test_work_that_is_given_up_is_told(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    await scene.start(CHAIN)
    for _ in range(ATTEMPTS_MAX):
        await scene.claim_one()
        await scene.pass_time(2 * LEASE_SECONDS)
    assert "given up: every worker that took it went quiet" in told(caplog)


async def test_workers_are_told_when_they_come_leave_and_are_lost(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    polite, quiet = worker("polite"), worker("quiet")
    for each in (polite, quiet):
        await scene.desk.register(each)
    await scene.desk.deregister(polite)
    await scene.pass_time(4 * LEASE_SECONDS)

    assert told(caplog) == ["worker registered"] * 2 + ["worker signed off", "worker lost"]
    assert named(caplog, "worker lost") == {"worker": "quiet"}


async def test_a_worker_that_only_sends_heartbeats_is_not_lost(scene: Scene) -> None:
    by: WorkerIdentity = worker("busy")
    await scene.start(CHAIN)
    work = await scene.claim_one(by)
    for _ in range(20):
        await scene.pass_time(LEASE_SECONDS / 3)
        await scene.desk.heartbeat(beat(work, by))
    assert scene.coordinator.seats.find(by.worker_id) is not None


async def test_a_turn_that_cannot_be_appended_is_told(caplog: pytest.LogCaptureFixture) -> None:
    log = ObedientLog()
    scene = Scene(log)
    execution = await scene.start(CHAIN)
    caplog.clear()
    log.failures.append(LogUnavailable("the disk is full of " + SECRET))
    with pytest.raises(LogUnavailable):
        await scene.control.pause(DEFAULT_SCOPE, execution)
    assert named(caplog, "a turn was lost: log_unavailable") == {"execution_id": execution}
    assert "1 appends failed together: log_unavailable" in told(caplog)
