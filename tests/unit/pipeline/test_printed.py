"""What code prints is told to people, bounded and without secrets; tracebacks name the line."""

import logging

import pytest

from noetl.domain.events.values import Failure
from noetl.pipeline.cycle import TRACEBACK_CHARS_MAX
from noetl.pipeline.printed import LINE_CHARS_MAX, LINES_MAX, PRINTED
from noetl.ports.tool import ToolFailed, ToolResult
from tests.unit.pipeline.rows import FunctionTool, House, job

WORD = "hunter2-hunter2"
STEP = "- step: say\n  tool: {kind: python, auth: shop, code: x}"


async def told(text: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    house = House(python=FunctionTool(lambda _: ToolResult(value=1, printed=text)))
    await house.keep("shop", {"token": WORD}, "bearer")
    with caplog.at_level(logging.INFO, logger=PRINTED):
        await house.run(job(STEP))
    return [record.getMessage() for record in caplog.records if record.name == PRINTED]


async def test_a_line_of_the_log_is_a_line_that_was_printed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await told("one\ntwo\n", caplog) == ["one", "two"]
    about = vars(caplog.records[0])["about"]
    assert (about["step"], about["task"]) == ("say", "say")
    assert about["execution_id"]


async def test_secrets_are_not_among_them(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = await told(f"the token is {WORD}", caplog)
    assert WORD not in line
    assert line.startswith("the token is ")


async def test_only_the_last_lines_are_told_and_none_is_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = await told("\n".join(["x" * 10_000] * (LINES_MAX + 5)), caplog)
    assert lines[0] == "[5 lines before]"
    assert len(lines) == LINES_MAX + 1
    assert max(map(len, lines)) == LINE_CHARS_MAX + 1


async def test_what_was_printed_before_a_failure_is_told_too_and_the_end_of_its_traceback_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    traceback = "\n".join([f"  line {number}" for number in range(500)] + [f"E: {WORD} is bad"])

    def fail(_: object) -> None:
        py = {"exception": "E", "traceback": traceback, "output": f"before {WORD}\n"}
        raise ToolFailed(Failure(kind="transform", message="bad"), py=py)

    house = House(python=FunctionTool(fail))
    await house.keep("shop", {"token": WORD}, "bearer")
    with caplog.at_level(logging.INFO, logger=PRINTED):
        ended = await house.run(job(STEP))

    (line,) = [record.getMessage() for record in caplog.records if record.name == PRINTED]
    assert line.startswith("before ")
    assert ended.error is not None
    kept = ended.error.detail["py"]
    assert set(kept) == {"exception", "traceback"}
    assert len(kept["traceback"]) <= TRACEBACK_CHARS_MAX
    assert kept["traceback"].startswith("  line ")
    assert kept["traceback"].endswith(" is bad")
    assert WORD not in f"{line} {ended.error}"
