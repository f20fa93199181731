"""A sub-playbook is asked for once per cycle, waited for, and its end is the task's."""

from pathlib import Path
from typing import Any

import pytest

from noetl.adapters.system.clock import SystemClock
from noetl.domain.events.values import Failure, ResultReference
from noetl.domain.work import ChildOutcome, ChildRequest
from noetl.kernel import canonical_json
from noetl.kernel.errors import ClaimLost, EntryNotFound, LogUnavailable, NoETLError
from noetl.kernel.ids import CommandId, ExecutionId, StepName
from noetl.kernel.instant import Instant
from noetl.ports.tool import ToolFailed
from noetl.templates.layered import PipelineResult
from noetl.templates.recorded import content_of, inline_result, referred_result
from noetl.tools.playbook import WAIT_SECONDS, PlaybookTool
from tests.memory_payloads import MemoryPayloadStore
from tests.tools.tool_calls import EXECUTION, KEY, SCOPE, ChildrenDesk, call, services

CHILD = ExecutionId("9000")


class SteppingClock:
    """Every look at it is ten seconds later."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def now(self) -> Instant:
        raise AssertionError("a wait needs no time of day")

    def monotonic(self) -> float:
        self._seconds += 10
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("the desk waits, not the tool")


class RefusingDesk(ChildrenDesk):
    def __init__(self, error: NoETLError) -> None:
        super().__init__()
        self._error = error

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        raise self._error


def ended(value: Any = None, **further: Any) -> ChildOutcome:
    facts: dict[str, Any] = {"status": "COMPLETED", "result": inline_result(value)}
    return ChildOutcome(execution_id=CHILD, **(facts | further))


class ImpatientClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        del seconds


async def run(folder: Path, desk: ChildrenDesk, parameters: dict[str, Any], **further: Any) -> Any:
    tool = PlaybookTool(services(folder, desk=desk, clock=further.pop("clock", None)))
    return (await tool.run(call("playbook", {"path": "demo/child"} | parameters, **further))).value


async def test_the_child_is_asked_for_by_the_cycle_with_the_merged_input(tmp_path: Path) -> None:
    desk = ChildrenDesk(ended())
    given = {"version": "3", "input": {"n": 2, "m": 3}}

    await run(tmp_path, desk, given, input={"n": 1, "step": True})

    assert desk.requests == [
        ChildRequest(
            execution_id=EXECUTION,
            command_id=CommandId("7002"),
            cycle=KEY,
            path="demo/child",
            version=3,
            payload={"n": 2, "m": 3, "step": True},
        )
    ]


@pytest.mark.parametrize("version", [None, "latest", ""])
async def test_without_a_version_it_is_the_newest(tmp_path: Path, version: str | None) -> None:
    desk = ChildrenDesk(ended())

    await run(tmp_path, desk, {"version": version, "catalog_id": 42})

    assert desk.requests[0].version is None
    assert desk.requests[0].catalog_id == "42"


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ({"score": 5}, {"score": 5}),
        ({"status": "own"}, {"status": "own"}),
        ([1, 2], {"result": [1, 2]}),
        (None, {"result": None}),
        (PipelineResult({"a": {"x": 1}, "b": {"y": 2}}), {"y": 2}),
    ],
)
async def test_the_childs_result_is_merged_with_its_end(
    tmp_path: Path, value: Any, result: dict[str, Any]
) -> None:
    facts = {"status": "COMPLETED", "execution_id": CHILD}

    assert await run(tmp_path, ChildrenDesk(ended(value)), {}) == facts | result


async def test_return_step_picks_one_steps_result(tmp_path: Path) -> None:
    steps = {StepName("mid"): inline_result({"n": 1}), StepName("last"): inline_result(7)}
    end = ended({"n": 9}, step_results=steps)
    facts = {"status": "COMPLETED", "execution_id": CHILD}

    assert await run(tmp_path, ChildrenDesk(end), {"return_step": "mid"}) == facts | {"n": 1}
    assert await run(tmp_path, ChildrenDesk(end), {"return_step": "last"}) == facts | {"result": 7}
    assert await run(tmp_path, ChildrenDesk(end), {"return_step": "unreached"}) == facts
    assert await run(tmp_path, ChildrenDesk(end), {"return_result": False}) == facts


async def test_a_large_result_is_fetched_from_the_payload_store(tmp_path: Path) -> None:
    store = MemoryPayloadStore()
    content = content_of({"rows": list(range(5000)), "n": 1})
    put = await store.put(SCOPE, canonical_json.encode(content), "application/json")
    reference = ResultReference(type="object_store", uri=put.uri, sha256=put.sha256)
    desk = ChildrenDesk(ended(result=referred_result(content, reference)))
    tool = PlaybookTool(services(tmp_path, desk=desk, payloads=store))

    value = (await tool.run(call("playbook", {"path": "demo/child"}))).value

    assert value["rows"] == list(range(5000))
    assert value["status"] == "COMPLETED"


async def test_it_waits_as_often_as_the_child_needs(tmp_path: Path) -> None:
    desk = ChildrenDesk(None, None, ended({"n": 1}))

    assert (await run(tmp_path, desk, {}))["n"] == 1
    assert desk.waits == [WAIT_SECONDS] * 3


async def test_wait_false_starts_it_and_goes_on(tmp_path: Path) -> None:
    desk = ChildrenDesk()

    value = await run(tmp_path, desk, {"wait": False})

    assert value == {"status": "started", "execution_id": CHILD}
    assert desk.waits == []


async def test_a_cycle_that_runs_again_finds_the_same_child(tmp_path: Path) -> None:
    desk = ChildrenDesk()

    first = await run(tmp_path, desk, {"wait": False})
    again = await run(tmp_path, desk, {"wait": False})
    other = await run(tmp_path, desk, {"wait": False}, idempotency_key="7001/load/2/0/task/1")

    assert first == again
    assert other["execution_id"] != first["execution_id"]
    assert not PlaybookTool(services(tmp_path)).has_effect({})
    assert PlaybookTool(services(tmp_path)).waits


@pytest.mark.parametrize(
    ("command", "attempt", "cycle"),
    [
        ("7001/load/1/0/1", 1, KEY),
        ("7001/load/1/0/1", 2, f"{KEY}/attempt 2"),
        ("7001/load/1/0/3", 1, f"{KEY}/try 3"),
        ("7001/load/1/0/3", 2, f"{KEY}/try 3/attempt 2"),
    ],
)
async def test_every_try_has_a_child_of_its_own(
    tmp_path: Path, command: str, attempt: int, cycle: str
) -> None:
    desk = ChildrenDesk(ended())
    await run(tmp_path, desk, {}, command_id=CommandId(command), attempt=attempt)
    assert [request.cycle for request in desk.requests] == [cycle]


async def test_a_row_of_a_retried_loop_has_a_child_of_its_own(tmp_path: Path) -> None:
    desk = ChildrenDesk(ended())
    await run(tmp_path, desk, {}, command_id=None, visit_attempt=3)
    assert [request.cycle for request in desk.requests] == [f"{KEY}/try 3"]


class AwayDesk(ChildrenDesk):
    """Does not answer the first time it is asked for a child, and for its end."""

    is_away = True
    is_starting = True

    async def start_child(self, request: ChildRequest) -> ExecutionId:
        if self.is_starting:
            self.is_starting = False
            raise LogUnavailable("the server is not there yet")
        return await super().start_child(request)

    async def await_child(self, child: ExecutionId, *, wait_seconds: float) -> ChildOutcome | None:
        if self.is_away:
            self.is_away = False
            raise LogUnavailable("the server went away")
        return await super().await_child(child, wait_seconds=wait_seconds)


async def test_a_desk_that_goes_away_while_it_waits_is_asked_again(tmp_path: Path) -> None:
    desk = AwayDesk(ended(7))
    value = await run(tmp_path, desk, {})
    assert value["result"] == 7
    assert len(desk.requests) == 1


async def test_a_failed_child_fails_the_task_with_the_childs_reason(tmp_path: Path) -> None:
    error = Failure(kind="rate_limit", message="slow down", retryable=True, code="429")
    desk = ChildrenDesk(ended(status="FAILED", result=None, error=error))

    with pytest.raises(ToolFailed) as raised:
        await run(tmp_path, desk, {})

    failure = raised.value.failure
    assert (failure.kind, failure.code, failure.retryable) == ("rate_limit", "429", False)
    assert failure.message == (
        "the playbook 'demo/child', execution 9000, ended as FAILED: slow down"
    )
    assert failure.detail == {"execution_id": "9000", "status": "FAILED"}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        ("CANCELLED", None, "cancelled"),
        ("FAILED", None, "unknown"),
        ("FAILED", Failure(kind="odd", message="x"), "unknown"),
    ],
)
async def test_every_bad_end_has_a_kind_of_the_vocabulary(
    tmp_path: Path, status: str, error: Failure | None, kind: str
) -> None:
    desk = ChildrenDesk(ended(status=status, result=None, error=error))

    with pytest.raises(ToolFailed) as raised:
        await run(tmp_path, desk, {})

    assert raised.value.failure.kind == kind


async def test_a_child_that_takes_too_long_is_named(tmp_path: Path) -> None:
    desk = ChildrenDesk()
    tool = PlaybookTool(services(tmp_path, desk=desk, clock=SteppingClock()))

    with pytest.raises(ToolFailed, match=r"not ended after 45 seconds; execution 9000") as raised:
        await tool.run(call("playbook", {"path": "demo/child"}, timeout_seconds=45.0))

    assert raised.value.failure.kind == "timeout"
    assert desk.waits == [30, 25, 15, 5]


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (EntryNotFound("playbook demo/child"), "not_found", False),
        (LogUnavailable("the log did not answer"), "connection", True),
    ],
)
async def test_a_child_that_cannot_start_says_why(
    tmp_path: Path, error: NoETLError, kind: str, retryable: bool
) -> None:
    with pytest.raises(ToolFailed, match="could not be started") as raised:
        await run(tmp_path, RefusingDesk(error), {}, clock=ImpatientClock())

    assert raised.value.failure.kind == kind
    assert raised.value.failure.retryable is retryable


async def test_a_lost_claim_is_no_failure_of_the_task(tmp_path: Path) -> None:
    with pytest.raises(ClaimLost):
        await run(tmp_path, RefusingDesk(ClaimLost("command 1", "has another holder")), {})


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"path": None}, "needs `path`, or `catalog_id`"),
        ({"version": "two"}, "'two' is no number"),
        ({"input": "text"}, "must be a mapping, not str"),
    ],
)
async def test_a_mistake_in_the_task_is_told(
    tmp_path: Path, parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ToolFailed, match=words):
        await run(tmp_path, ChildrenDesk(), parameters)
