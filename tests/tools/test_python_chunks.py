"""Code that yields: each chunk is taken before the one after the next is made."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from noetl.kernel.errors import ClaimLost
from noetl.ports.tool import ToolFailed
from noetl.tools.python import PythonTool
from tests.tools.calls import call
from tests.tools.python_runs import PID, making, run

PAGES = """
def main(count, size=2, seen=None):
    for page in range(count):
        if seen:
            with open(seen, "a") as file:
                print(page, file=file)
        yield [{"id": page * size + row, "text": "x" * 100} for row in range(size)]
"""


class Taken:
    """Takes chunks, and looks how many were made by then."""

    def __init__(self, seen: Path | None = None) -> None:
        self.chunks: list[Any] = []
        self.has_more: list[bool] = []
        self.ahead: list[int] = []
        self._seen = seen

    async def __call__(self, value: Any, has_more: bool) -> None:
        self.chunks.append(value)
        self.has_more.append(has_more)
        if self._seen is not None:
            made = len(self._seen.read_text().splitlines())
            self.ahead.append(made - len(self.chunks))


@pytest.fixture
async def tool(tmp_path: Path) -> AsyncIterator[PythonTool]:
    async with making(tmp_path) as maker:
        yield maker()


async def test_chunks_come_in_order_and_the_last_one_says_so(tool: PythonTool) -> None:
    taken = Taken()

    value = await run(tool, PAGES, {"count": 3}, pass_on=taken)

    assert [[row["id"] for row in chunk] for chunk in taken.chunks] == [[0, 1], [2, 3], [4, 5]]
    assert taken.has_more == [True, True, False]
    assert value == {"chunks": 3}


async def test_ten_thousand_rows_in_ten_chunks_are_never_more_than_two_in_memory(
    tool: PythonTool, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    taken = Taken(seen)

    await run(tool, PAGES, {"count": 10, "size": 1_000, "seen": str(seen)}, pass_on=taken)

    assert sum(map(len, taken.chunks)) == 10_000
    assert taken.ahead == [1] * 9 + [0]


@pytest.mark.parametrize(
    ("code", "chunks", "value"),
    [
        ("result = (n * n for n in range(3))", [0, 1, 4], {"chunks": 3}),
        ("def main():\n    yield 1\n    return {'total': 1}", [1], {"total": 1}),
        ("def main():\n    return\n    yield", [], {"chunks": 0}),
        ("result = iter([{'a': 1}, None])", [{"a": 1}, None], {"chunks": 2}),
        ("result = [1, 2]", [], [1, 2]),
    ],
)
async def test_whatever_yields_is_taken_and_whatever_it_returns_is_the_result(
    tool: PythonTool, code: str, chunks: list[Any], value: Any
) -> None:
    taken = Taken()

    assert await run(tool, code, pass_on=taken) == value
    assert taken.chunks == chunks


async def test_without_anybody_to_take_them_a_generator_is_no_result(tool: PythonTool) -> None:
    with pytest.raises(ToolFailed, match="generator"):
        await run(tool, PAGES, {"count": 3})


async def test_what_was_yielded_before_a_failure_is_taken(tool: PythonTool) -> None:
    taken = Taken()
    code = "def main():\n    yield 1\n    yield 2\n    raise ValueError('no page 3')"

    with pytest.raises(ToolFailed, match="no page 3"):
        await run(tool, code, pass_on=taken)

    assert (taken.chunks, taken.has_more) == ([1, 2], [True, True])
    assert await run(tool, "result = 5") == 5


async def test_a_chunk_that_is_no_plain_data_fails_the_call(tool: PythonTool) -> None:
    with pytest.raises(ToolFailed, match="finite") as raised:
        await run(tool, "def main():\n    yield float('nan')", pass_on=Taken())
    assert raised.value.failure.kind == "schema"


async def test_a_lost_claim_ends_the_code(tool: PythonTool) -> None:
    """The process stands in the middle of a generator: nobody gets it."""
    before = await run(tool, PID)

    async def refuse(_value: Any, _has_more: bool) -> None:
        raise ClaimLost("the work", "has another holder")

    with pytest.raises(ClaimLost):
        await tool.run(call("python", {"code": PAGES}, input={"count": 3}, pass_on=refuse))

    assert await run(tool, PID) != before
