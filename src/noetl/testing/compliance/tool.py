"""The Tool's promises as tests. A tool passes by subclassing and giving fixtures."""

import asyncio
import contextlib
import copy
import traceback
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from noetl.kernel import canonical_json
from noetl.ports.tool import Tool, ToolCall, ToolFailed, ToolResult

KINDS = frozenset(
    {"connection", "timeout", "rate_limit", "auth", "not_found", "client_error", "server_error"}
    | {"schema", "parse", "transform", "unknown", "cancelled", "effect_in_doubt"}
    | {"db_connection", "db_constraint", "db_deadlock", "db_timeout"}
    | {"storage_quota", "storage_access", "missing_reference"}
)
"""The vocabulary of failures."""

TIMED_OUT = ("timeout", "db_timeout")
NONSENSE: tuple[Any, ...] = (None, [], {}, {"a": [{}]})
CALLS_AT_ONCE = 8
SHORT_SECONDS = 0.3
LONG_SECONDS = 30.0

Look = Callable[[], Awaitable[list[str]]]
"""Ask the world behind a tool; the words it answers with are shown when a test fails."""


class ToolCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def tool(self) -> Tool: ...

    @pytest.fixture
    @abstractmethod
    def good_call(self) -> ToolCall:
        """A call that succeeds, also when it is made again, and gives the same each time."""

    @pytest.fixture
    @abstractmethod
    def failing_call(self) -> ToolCall:
        """A call that fails, with `secret` among its credentials where the tool takes any."""

    @pytest.fixture
    def secret(self) -> str:
        """A text in the failing call that nobody may see; a tool may take none."""
        pytest.skip("T4: it takes no secret")

    @pytest.fixture
    def slow_call(self) -> ToolCall:
        """A call that does not end within the time of a test."""
        pytest.skip("T3: its calls do not wait for anybody")

    @pytest.fixture
    def left_running(self) -> Look:
        """What an ended call has left running: processes, statements, subscriptions."""

        async def nothing() -> list[str]:
            return []

        return nothing

    @pytest.fixture
    def keys_received(self) -> Look:
        """The idempotency keys that the target of `good_call` has seen."""
        pytest.skip("T2: its targets honour no key")

    def comparable(self, value: Any) -> Any:
        """The value without what differs from call to call, such as durations."""
        return value

    async def test_t1_a_result_is_plain_data(self, tool: Tool, good_call: ToolCall) -> None:
        result = await tool.run(good_call)

        for part in (result.value, result.http, result.pg):
            canonical_json.check_plain(part)
            canonical_json.encode(part)

    async def test_t1_a_failure_has_a_kind_of_the_vocabulary(
        self, tool: Tool, failing_call: ToolCall
    ) -> None:
        error = await failure_of(tool, failing_call)

        assert error.failure.kind in KINDS
        for part in (error.failure.detail, error.value, error.http, error.pg, error.py):
            canonical_json.check_plain(part)

    async def test_t1_nonsense_in_a_parameter_brings_no_other_error_out(
        self, tool: Tool, good_call: ToolCall
    ) -> None:
        for name in good_call.parameters:
            for nonsense in NONSENSE:
                parameters = {**good_call.parameters, name: copy.deepcopy(nonsense)}
                call = msgspec.structs.replace(good_call, parameters=parameters)
                tool.has_effect(parameters)
                with contextlib.suppress(ToolFailed):
                    canonical_json.check_plain((await tool.run(call)).value)

    async def test_t2_the_key_goes_to_the_target_each_time(
        self, tool: Tool, good_call: ToolCall, keys_received: Look
    ) -> None:
        await tool.run(good_call)
        await tool.run(good_call)

        assert set(await keys_received()) == {good_call.idempotency_key}

    async def test_t3_a_cancelled_call_leaves_nothing_running(
        self, tool: Tool, slow_call: ToolCall, left_running: Look
    ) -> None:
        running = asyncio.create_task(tool.run(slow_call))
        await asyncio.wait([running], timeout=SHORT_SECONDS)
        assert not running.done(), "the slow call was not slow"

        running.cancel()
        await asyncio.wait([running], timeout=LONG_SECONDS)

        assert running.cancelled()
        assert await left_running() == []

    async def test_t3_a_call_ends_when_its_time_is_over(
        self, tool: Tool, slow_call: ToolCall, left_running: Look
    ) -> None:
        call = msgspec.structs.replace(slow_call, timeout_seconds=SHORT_SECONDS)

        async with asyncio.timeout(LONG_SECONDS):
            error = await failure_of(tool, call)

        assert error.failure.kind in TIMED_OUT
        assert await left_running() == []

    async def test_t3_after_a_call_that_was_cancelled_the_next_one_works(
        self, tool: Tool, slow_call: ToolCall, good_call: ToolCall
    ) -> None:
        expected = await tool.run(good_call)
        running = asyncio.create_task(tool.run(slow_call))
        await asyncio.wait([running], timeout=SHORT_SECONDS)
        running.cancel()

        result = await tool.run(good_call)

        assert self.comparable(result.value) == self.comparable(expected.value)
        await asyncio.wait([running], timeout=LONG_SECONDS)

    async def test_t4_a_failure_has_words(self, tool: Tool, failing_call: ToolCall) -> None:
        error = await failure_of(tool, failing_call)

        assert error.failure.message.strip()
        assert "Traceback" not in error.failure.message

    async def test_t4_a_failure_holds_no_secret(
        self, tool: Tool, failing_call: ToolCall, secret: str
    ) -> None:
        assert secret in repr(msgspec.to_builtins(failing_call)), "the call holds no secret"

        error = await failure_of(tool, failing_call)

        told = [msgspec.to_builtins(error.failure), error.value, error.http, error.pg, error.py]
        assert secret not in repr(told)
        # Also where a log would show it: in the errors that it came from.
        assert secret not in "".join(traceback.format_exception(error))

    async def test_t5_calls_side_by_side_give_what_they_give_alone(
        self, tool: Tool, good_call: ToolCall
    ) -> None:
        alone = self.comparable((await tool.run(good_call)).value)

        results = await asyncio.gather(*(tool.run(good_call) for _ in range(CALLS_AT_ONCE)))

        values = [self.comparable(result.value) for result in results]
        assert values == [alone] * CALLS_AT_ONCE

    async def test_t5_a_failing_call_disturbs_no_other(
        self, tool: Tool, good_call: ToolCall, failing_call: ToolCall
    ) -> None:
        calls = [good_call, failing_call] * CALLS_AT_ONCE

        outcomes = await asyncio.gather(*map(tool.run, calls), return_exceptions=True)

        kinds = [type(outcome) for outcome in outcomes]
        assert kinds == [ToolResult, ToolFailed] * CALLS_AT_ONCE, outcomes

    async def test_t5_a_call_is_left_as_it_was(self, tool: Tool, good_call: ToolCall) -> None:
        before = copy.deepcopy(msgspec.to_builtins(good_call))

        await tool.run(good_call)

        assert msgspec.to_builtins(good_call) == before


async def failure_of(tool: Tool, call: ToolCall) -> ToolFailed:
    with pytest.raises(ToolFailed) as raised:
        await tool.run(call)
    return raised.value
