"""An effect whose result is stored and nowhere recorded is adopted by whoever comes next."""

from typing import Any

import pytest
from msgspec.structs import replace

from noetl.domain.work import HOLDERS_MAX, Call
from noetl.kernel.errors import ClaimLost, StoreUnavailable
from noetl.pipeline.job import Job, RowResult
from noetl.ports.tool import ToolResult
from noetl.templates.places import Frame, Iteration
from tests.unit.pipeline.rows import FirmHold, FunctionTool, House, fails, in_turn, job

LARGE = {"text": "x" * 150_000}
TWO = """
    - step: s
      tool:
        - {name: pay, kind: http, url: u, set: {ctx.code: "{{ output.http.status }}"}%s}
        - {name: note, kind: python, code: "c"}
    """
LONE = "- step: s\n  tool: {kind: http, url: u%s}"
ONCE = ", effects: at_most_once"


class Worker:
    """One holder after the other over one store; each but the last dies before it is heard."""

    def __init__(self, *given: Any) -> None:
        answers = [each if isinstance(each, Exception) else _answer(each) for each in given]
        self.http = FunctionTool(in_turn(*answers), effect=True)
        self.house = House(http=self.http, python=FunctionTool(lambda _: 1, effect=True))

    async def dies(self, work: Job, *, checks: int = 1) -> None:
        """Right before its next effect, or with its report unsent."""
        self.house.hold = FirmHold(checks)
        if work.step.is_pipeline:
            with pytest.raises(ClaimLost):
                await self.house.run(work)
        else:
            await self.house.run(work)
        self.house.journal.calls.clear()  # what it wrote down did not arrive
        self.house.hold = FirmHold()

    async def again(self, work: Job, attempt: int = 2) -> RowResult:
        return await self.house.run(replace(work, attempt=attempt, has_predecessor=True))


def _answer(value: Any) -> ToolResult:
    return ToolResult(value=value, http={"status": 202})


@pytest.mark.parametrize("policy", ["", ONCE])
async def test_a_stored_success_is_adopted_with_all_that_was_known_of_it(policy: str) -> None:
    work, worker = job(TWO % policy), Worker(LARGE)
    await worker.dies(work)

    ended = await worker.again(work)

    assert len(worker.http.calls) == 1
    assert (ended.status, ended.adopted, ended.repeated) == ("ok", ("77/s/1/0/pay/1",), ())
    assert ended.writes == {"code": 202}
    (recorded,) = worker.house.journal.calls  # before the next effect, as if it had just ended
    assert (recorded.task, recorded.effect, recorded.error) == ("pay", "fired", None)
    assert ended.value.tasks["pay"] == LARGE
    assert ended.fired == 1, "the second effect is new: nobody can have fired it"


@pytest.mark.parametrize("policy", ["", ONCE])
async def test_the_result_of_a_lone_tool_is_the_one_that_lies_there(policy: str) -> None:
    work, worker = job(LONE % policy), Worker(LARGE)
    await worker.dies(work)

    ended = await worker.again(work, attempt=3)

    assert len(worker.http.calls) == 1
    assert (ended.status, ended.value) == ("ok", LARGE)
    assert ended.recorded is not None
    assert ended.recorded.reference is not None
    assert ended.recorded.reference.uri.endswith("/s/0/0/1@1")
    assert [(call.task, call.effect) for call in ended.calls] == [("s", "fired")]


async def test_a_stored_failure_is_run_again() -> None:
    work = job(LONE % "")
    worker = Worker(fails("server_error", value=LARGE), {"n": 1})
    await worker.dies(work)
    assert await worker.house.results.objects.list_objects("") != []

    ended = await worker.again(work)

    assert (len(worker.http.calls), ended.status) == (2, "ok")
    assert ended.repeated == ("77/s/1/0/s/1",)


async def test_a_small_result_leaves_nothing_and_is_repeated() -> None:
    work, worker = job(LONE % ""), Worker({"n": 1})
    await worker.dies(work)
    assert await worker.house.results.objects.list_objects("") == []

    ended = await worker.again(work)

    assert (len(worker.http.calls), ended.repeated) == (2, ("77/s/1/0/s/1",))


async def test_a_try_that_was_noted_may_have_been_followed_by_a_success() -> None:
    work, worker = job(LONE % ""), Worker(LARGE)
    await worker.dies(work)
    tried = {("s", 1): Call(task="s", effect="fired", tries=1)}

    ended = await worker.again(replace(work, journal=tried))

    assert (len(worker.http.calls), ended.adopted) == (1, ("77/s/1/0/s/1",))


async def test_a_retry_by_a_person_runs_it() -> None:
    """Whoever retries has seen that it was lost; names of the visit before are not asked."""
    work, worker = job(LONE % ""), Worker(LARGE)
    await worker.dies(work)

    await worker.again(work, attempt=HOLDERS_MAX + 1)

    assert len(worker.http.calls) == 2


async def test_nobody_is_asked_when_there_is_no_doubt() -> None:
    work, worker = job(LONE % ""), Worker(LARGE)
    await worker.dies(work)

    await worker.house.run(replace(work, attempt=2))

    assert len(worker.http.calls) == 2


async def test_a_store_that_is_away_leaves_the_effect_unfired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work, worker = job(LONE % ""), Worker(LARGE)
    await worker.dies(work)

    def away(_key: str) -> Any:
        raise StoreUnavailable("the bucket does not answer")

    monkeypatch.setattr(worker.house.results.objects, "read", away)
    with pytest.raises(StoreUnavailable):
        await worker.again(work)
    assert len(worker.http.calls) == 1


async def test_the_last_call_of_a_row_goes_to_its_journal_alone() -> None:
    """It does not wait there: a second write for each row would buy next to nothing."""
    row: dict[str, Any] = {
        "iteration": Iteration(iterator="row", item=1, index=0),
        "frame": Frame(index=0),
    }
    worker = Worker(LARGE)
    await worker.house.run(job(LONE % "", **row))
    stored = await worker.house.results.objects.list_objects("")
    assert [facts.key.rpartition(".")[2] for facts in stored] == ["json"]
