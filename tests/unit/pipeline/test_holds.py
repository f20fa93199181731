"""A row needs its hold to go on, gives its slot back while it waits, and ends in time."""

import asyncio

import pytest

from noetl.kernel.errors import ClaimLost
from noetl.pipeline import boundary
from noetl.ports.tool import ToolCall
from tests.unit.pipeline.rows import FirmHold, FunctionTool, House, fails, in_turn, job, one_task

TWO = "- step: s\n  tool: [{name: a, kind: http, url: u}, {name: b, kind: http, url: u}]"


class TestTheHold:
    async def test_nothing_starts_without_it(self) -> None:
        house = House(http=FunctionTool(in_turn(1), effect=True))
        house.hold = FirmHold(checks_max=1)

        with pytest.raises(ClaimLost):
            await house.run(job(TWO))

        assert house.hold.checks == 2

    async def test_it_is_asked_again_after_a_pause(self) -> None:
        rule = "{else: {do: retry, attempts: 3}}"
        tool = FunctionTool(in_turn(fails("timeout")))
        house = House(http=tool)
        house.hold = FirmHold(checks_max=1)
        text = f"- step: s\n  tool: {{kind: http, url: u, spec: {{policy: {{rules: [{rule}]}}}}}}"

        with pytest.raises(ClaimLost):
            await house.run(job(text))

        assert (len(tool.calls), house.clock.slept) == (1, [1.0])

    async def test_once_before_each_try_and_once_after_each_pause(self) -> None:
        rule = "{when: \"{{ output.status == 'error' }}\", then: {do: retry, attempts: 3}}"
        house = House(http=FunctionTool(in_turn(fails("timeout"), 1)))
        text = f"- step: s\n  tool: {{kind: http, url: u, spec: {{policy: {{rules: [{rule}]}}}}}}"

        await house.run(job(text))

        assert house.hold.checks == 3

    async def test_a_tool_that_waits_gives_its_slot_back(self) -> None:
        seen: list[list[str]] = []

        def wait(_call: ToolCall) -> None:
            seen.append(list(house.hold.slots))
            raise fails("timeout")

        house = House(playbook=FunctionTool(wait, waits=True))

        await house.run(job("- step: s\n  tool: {kind: playbook, path: p}"))

        assert seen == [["parked"]]
        assert house.hold.slots == ["parked", "unparked"]


class TestTimeouts:
    async def forever(self, _call: ToolCall) -> None:
        self.started.set()
        await asyncio.Event().wait()

    @pytest.fixture(autouse=True)
    def _started(self) -> None:
        self.started = asyncio.Event()

    @pytest.mark.parametrize("written", ["0.01", "'{{ short }}'"])
    async def test_a_task_that_takes_too_long(
        self, written: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(boundary, "GRACE_SECONDS", 0.0)
        house = House(http=FunctionTool(self.forever))
        text = f"- step: s\n  tool: {{kind: http, url: u, timeout: {written}}}"

        ended = await house.run(job(text, workload={"short": "10ms"}))

        assert ended.error is not None
        assert (ended.error.kind, ended.error.retryable) == ("timeout", True)
        assert "longer than 0.01 seconds" in ended.error.message

    async def test_a_step_that_takes_too_long_tells_of_the_effect_in_flight(self) -> None:
        house = House(http=FunctionTool(self.forever, effect=True))
        text = "- step: s\n  spec: {timeout: '{{ short }}'}\n  tool: {kind: http, url: u}"

        ended = await house.run(job(text, workload={"short": 0.01}))

        assert ended.error is not None
        assert (ended.status, ended.error.kind) == ("failed", "timeout")
        (call,) = ended.calls
        assert (call.task, call.effect, call.error) == ("s", "fired", ended.error)

    async def test_a_tool_that_watches_the_time_itself_has_the_first_word(self) -> None:
        async def watch(call: ToolCall) -> None:
            try:
                async with asyncio.timeout(call.timeout_seconds):
                    await asyncio.Event().wait()
            except TimeoutError:
                raise fails("timeout", "half of it is done", value={"half": 1}) from None

        house = House(http=FunctionTool(watch))
        ended = await house.run(job("- step: s\n  tool: {kind: http, url: u, timeout: 0.01}"))

        assert ended.error is not None
        assert (ended.error.message, ended.value) == ("half of it is done", {"half": 1})

    async def test_a_timeout_of_the_tools_own_is_not_ours(self) -> None:
        house = House(http=FunctionTool(in_turn(TimeoutError("socket"))))

        ended = await house.run(job("- step: s\n  tool: {kind: http, url: u, timeout: 60}"))

        assert ended.error is not None
        assert (ended.error.kind, ended.error.message) == ("unknown", "TimeoutError: socket")

    async def test_a_cancelled_row_is_cancelled(self) -> None:
        house = House(http=FunctionTool(self.forever, waits=True))
        running = asyncio.create_task(house.run(job("- step: s\n  tool: {kind: http, url: u}")))
        await self.started.wait()
        running.cancel()

        with pytest.raises(asyncio.CancelledError):
            await running
        assert house.hold.slots == ["parked", "unparked"]

    @pytest.mark.parametrize(
        ("delay", "slots"),
        [("1", []), ("1.5", ["parked", "unparked"]), ("1h", ["parked", "unparked"])],
    )
    async def test_a_long_pause_between_two_tries_holds_no_slot(
        self, delay: str, slots: list[str]
    ) -> None:
        house = House(http=FunctionTool(in_turn(fails("timeout", "slow"), 5)))
        rule = "{when: \"{{ output.status == 'error' }}\", then: {do: retry, delay: " + delay + "}}"

        ended = await house.run(job(one_task(rule)))

        assert ended.status == "ok"
        assert house.hold.slots == slots
