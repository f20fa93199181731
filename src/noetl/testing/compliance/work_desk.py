"""WorkDesk's promises as tests. A desk passes by subclassing and giving an `office`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from noetl.domain.events import CommandFailed
from noetl.domain.work import Call, CommandWork, LeaseAnswer, Work, WorkerIdentity
from noetl.kernel.errors import ClaimLost
from noetl.templates.recorded import inline_result
from noetl.testing.compliance.work_desk_chunks import WorkDeskChunks
from noetl.testing.compliance.work_desk_claims import WorkDeskClaims
from noetl.testing.desk_office import CLAIM_SECONDS, Office, one
from noetl.testing.desk_words import (
    CHAIN,
    CURSOR,
    ROWS,
    SHARDS,
    beat,
    child_of,
    chunk_of,
    claim_of,
    count,
    end_of,
    ended,
    name_of,
    said_to,
    started,
    types,
    worker,
)

PART_OF_LEASE = 0.7  # twice this is longer than a lease


class WorkDeskCompliance(WorkDeskClaims, WorkDeskChunks):
    @pytest.fixture(
        params=[CHAIN, ROWS, CURSOR, SHARDS], ids=["command", "frame", "cursor", "shard"]
    )
    def playbook(self, request: pytest.FixtureRequest) -> str:
        """Its first work is a command, or three frames: of one row, without rows, or shards."""
        text: str = request.param
        return text

    async def test_w1_work_is_handed_to_one_worker(self, office: Office) -> None:
        await office.start(ROWS, count=40)
        workers = [worker(name, slots=15) for name in "abcd"]

        claims = [office.desk.claim(each, 15, CLAIM_SECONDS) for each in workers]
        handed = [work for works in await asyncio.gather(*claims) for work in works]

        assert len({name_of(work) for work in handed}) == len(handed) == 40

    async def test_w1_a_holder_that_was_followed_by_another_is_refused(
        self, office: Office, playbook: str
    ) -> None:
        execution = await office.start(playbook)
        slow, quick = worker("slow"), worker("quick")
        first = await one(office, slow)
        await office.pass_time(2 * office.lease_seconds)
        (second,) = [work for work in await _all(office, quick) if name_of(work) == name_of(first)]
        before = await office.events(execution)

        assert claim_of(second) > claim_of(first)
        for say in _sayings(office, first, slow):
            with pytest.raises(ClaimLost):
                await say()
        assert await office.events(execution) == before
        assert await said_to(office.desk.report(ended(second, quick))) == "recorded"

    async def test_w2_a_report_is_recorded_when_it_is_acknowledged(
        self, office: Office, playbook: str
    ) -> None:
        execution = await office.start(playbook)
        holder = worker()
        work = await one(office, holder)

        await office.desk.report(ended(work, holder))

        done = end_of(work)
        assert done in types(await office.events(execution))

    async def test_w2_a_report_sent_again_changes_nothing(
        self, office: Office, playbook: str
    ) -> None:
        execution = await office.start(playbook)
        holder = worker()
        work = await one(office, holder)
        await office.desk.report(ended(work, holder))
        before = await office.events(execution)

        again = await said_to(office.desk.report(ended(work, holder, "another value")))

        assert again != "recorded"
        assert await office.events(execution) == before

    async def test_w2_of_two_reports_at_once_one_is_recorded(
        self, office: Office, playbook: str
    ) -> None:
        execution = await office.start(playbook)
        holder = worker()
        work = await one(office, holder)

        twice = [said_to(office.desk.report(ended(work, holder))) for _ in range(2)]
        said = await asyncio.gather(*twice)

        done = end_of(work)
        assert said.count("recorded") == 1
        assert count(await office.events(execution), done) == 1

    async def test_w2_work_in_an_answer_that_is_given_again_is_held_as_long_as_believed(
        self, office: Office
    ) -> None:
        """A worker counts its lease from before the question that brought the work."""
        await office.start(CHAIN)
        holder = worker()
        report = ended(await one(office, holder), holder)
        await office.desk.report(report)
        await office.pass_time(0.5 * office.lease_seconds)

        again = await office.desk.report(report)
        await office.pass_time(0.89 * office.lease_seconds)

        for work in again.next_work:
            assert await said_to(office.desk.report(ended(work, holder))) == "recorded"

    async def test_w3_a_heartbeat_keeps_the_lease(self, office: Office, playbook: str) -> None:
        await office.start(playbook)
        holder = worker()
        work = await one(office, holder)

        for _ in range(3):
            await office.pass_time(PART_OF_LEASE * office.lease_seconds)
            answer = await office.desk.heartbeat(beat(work, holder))

            assert answer.next_action == "continue"
        assert await said_to(office.desk.report(ended(work, holder))) == "recorded"

    async def test_w3_a_confirmed_lease_lasts_as_long_as_its_holder_believes(
        self, office: Office, playbook: str
    ) -> None:
        """A worker counts a whole lease, less a tenth, from each heartbeat that was answered."""
        await office.start(playbook)
        holder = worker()
        work = await one(office, holder)
        await office.pass_time(0.2 * office.lease_seconds)
        await office.desk.heartbeat(beat(work, holder))

        await office.pass_time(0.89 * office.lease_seconds)

        assert await said_to(office.desk.report(ended(work, holder))) == "recorded"

    async def test_w3_what_nobody_keeps_alive_fails_at_last(self, office: Office) -> None:
        execution = await office.start(CHAIN)
        claims = []
        for number in range(office.attempts_max):
            quiet = worker(f"quiet-{number}")
            claims.append(claim_of(await one(office, quiet)))
            await office.pass_time(2 * office.lease_seconds)

        events = await office.events(execution)
        assert claims == sorted(set(claims))
        errors = [each.event.error for each in events if isinstance(each.event, CommandFailed)]
        assert [error.kind for error in errors] == ["lease_lost"]
        assert await office.desk.claim(worker("late"), 1, 0) == []

    async def test_w4_a_new_boot_loses_what_the_earlier_one_held(
        self, office: Office, playbook: str
    ) -> None:
        execution = await office.start(playbook)
        before, after = worker(boot="1"), worker(boot="2")
        await office.desk.register(before)
        first = await one(office, before)

        await office.desk.register(after)
        handed = await _all(office, after)

        (second,) = [work for work in handed if name_of(work) == name_of(first)]
        assert claim_of(second) > claim_of(first)
        assert await said_to(office.desk.report(ended(first, before))) == "lost"
        assert await said_to(office.desk.report(ended(second, after))) == "recorded"
        assert not {"command.failed", "frame.failed"} & {*types(await office.events(execution))}

    async def test_w4_registering_again_under_the_same_boot_loses_nothing(
        self, office: Office, playbook: str
    ) -> None:
        await office.start(playbook)
        holder = worker()
        await office.desk.register(holder)
        work = await one(office, holder)

        await office.desk.register(holder)

        assert await said_to(office.desk.report(ended(work, holder))) == "recorded"

    async def test_w5_asking_twice_for_a_child_gives_the_same_one(
        self, office: Office, playbook: str
    ) -> None:
        execution = await office.start(playbook)
        holder = worker()
        work = await one(office, holder)
        request = child_of(work, "desk/chain")
        if playbook != CHAIN:
            await office.start(CHAIN)  # so that there is one to be started

        at_once = await asyncio.gather(*(office.desk.start_child(request) for _ in range(2)))
        later = await office.desk.start_child(request)

        assert {*at_once, later} == {later}
        assert count(await office.events(execution), "child.started") == 1
        assert count(await office.events(later), "playbook.initialized") == 1

    async def test_w5_work_that_is_over_has_no_more_children(
        self, office: Office, playbook: str
    ) -> None:
        await office.start(CHAIN)  # so that there is one to be started
        holder = worker()
        await office.desk.report(ended(await one(office, holder), holder))
        execution = await office.start(playbook, count=1)
        work = await one(office, holder)
        await office.desk.report(ended(work, holder))
        before = await office.events(execution)

        with pytest.raises(ClaimLost):
            await office.desk.start_child(child_of(work, "desk/chain"))

        assert await office.events(execution) == before

    async def test_w6_after_a_stop_nothing_is_recorded(self, office: Office, playbook: str) -> None:
        execution = await office.start(playbook)
        holder = worker()
        work = await one(office, holder)
        await office.cancel(execution)
        before = await office.events(execution)

        for say in _sayings(office, work, holder):
            assert await _is_stopped(say())
        assert await office.events(execution) == before


def _sayings(office: Office, work: Work, by: WorkerIdentity) -> list[Callable[[], Awaitable[Any]]]:
    """Everything that a holder can say of its work."""
    desk = office.desk
    said: list[Callable[[], Awaitable[Any]]] = [
        lambda: desk.heartbeat(beat(work, by)),
        lambda: desk.report(ended(work, by)),
    ]
    if isinstance(work, CommandWork):
        call = Call(task="call", result=inline_result(1), effect="fired")
        name, claim = work.command_id, work.claim
        said.append(lambda: desk.record_call(work.execution_id, name, claim, call))
        said.append(lambda: desk.record_chunk(chunk_of(work, 0)))
    elif work.mode == "cursor":
        said.append(lambda: desk.frame_started(started(work, by, ["a"])))
    return said


async def _is_stopped(saying: Awaitable[Any]) -> bool:
    try:
        answer = await saying
    except ClaimLost:
        return True
    return isinstance(answer, LeaseAnswer) and answer.next_action == "stop"


async def _all(office: Office, by: WorkerIdentity) -> list[Work]:
    """Whatever there is."""
    handed: list[Work] = []
    while given := await office.desk.claim(by, by.slots, CLAIM_SECONDS if not handed else 0.1):
        handed += given
    return handed
