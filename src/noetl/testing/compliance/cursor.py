"""The Cursor's promises as tests. A driver passes by subclassing and giving a table of work."""

import asyncio
import json
import os
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from noetl.ports.cursor import ClaimRequest, ClaimsOver, Cursor, Fate
from noetl.ports.tool import ToolCall, ToolFailed

IDLE_SECONDS = 30.0
ASKED_MAX = 200


class WorkTable(ABC):
    """Rows `1` to `5`, pending, in a table `work (id, status)`, and how to ask for them."""

    cursor: Cursor
    factory: str  # `module:function` that gives another process the same cursor and call

    @abstractmethod
    def call(self, sql: str) -> ToolCall: ...

    @abstractmethod
    async def pending(self) -> list[int]:
        """As somebody else sees them."""
        ...

    @abstractmethod
    def arguments(self) -> dict[str, Any]:
        """Plain data for `factory`."""
        ...

    @abstractmethod
    async def kept(self) -> list[str]:
        """The names of claims that lie in the database."""
        ...

    claim_sql = (
        "UPDATE work SET status = 'claimed' WHERE id IN"
        " (SELECT id FROM work WHERE status = 'pending' ORDER BY id LIMIT {rows}) RETURNING id"
    )

    def request(
        self, name: str, rows: int = 2, sql: str | None = None, over: ClaimsOver | None = None
    ) -> ClaimRequest:
        text = (sql or self.claim_sql).format(rows=rows)
        return ClaimRequest(
            call=self.call(text), name=name, idle_seconds_max=IDLE_SECONDS, over=over
        )


class CursorCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def work(self) -> AsyncIterator[WorkTable]: ...

    async def test_c1_a_claim_gives_the_rows_of_its_sql(self, work: WorkTable) -> None:
        async with work.cursor.claim(work.request("f1/1", rows=3)) as claim:
            assert sorted(row["id"] for row in claim.rows) == [1, 2, 3]
            assert claim.transaction
            await claim.commit()
        async with work.cursor.claim(work.request("f2/1", rows=9)) as claim:
            assert sorted(row["id"] for row in claim.rows) == [4, 5]
            await claim.commit()
        async with work.cursor.claim(work.request("f3/1")) as claim:
            assert claim.rows == []

    async def test_c2_nothing_is_claimed_without_a_commit(self, work: WorkTable) -> None:
        async with work.cursor.claim(work.request("f1/1")) as claim:
            assert len(claim.rows) == 2
        assert await work.pending() == [1, 2, 3, 4, 5]
        with pytest.raises(RuntimeError, match="in the middle"):
            await _claim_and_fail(work)
        assert await work.pending() == [1, 2, 3, 4, 5]
        async with work.cursor.claim(work.request("f1/3")) as claim:
            await claim.commit()
        assert await work.pending() == [3, 4, 5]

    async def test_c3_a_claim_that_ended_has_a_fate(self, work: WorkTable) -> None:
        request = work.request("f1/1")
        async with work.cursor.claim(request) as claim:
            kept = claim.transaction
            await claim.commit()
        assert await work.cursor.fate(request, kept) == "committed"
        request = work.request("f1/2")
        async with work.cursor.claim(request) as claim:
            undone = claim.transaction
        assert await work.cursor.fate(request, undone) == "aborted"

    async def test_c3_a_claim_of_a_killed_process_is_open_then_aborted(
        self, work: WorkTable
    ) -> None:
        request = work.request("f1/1")
        async with _other_process(work, "hold") as (process, transaction):
            assert await work.cursor.fate(request, transaction) == "open"
            os.kill(process.pid, signal.SIGKILL)
        assert await _settled(work, request, transaction) == "aborted"
        assert await work.pending() == [1, 2, 3, 4, 5]

    async def test_c3_a_claim_that_was_committed_survives_its_process(
        self, work: WorkTable
    ) -> None:
        request = work.request("f1/1")
        async with _other_process(work, "commit") as (process, transaction):
            os.kill(process.pid, signal.SIGKILL)
        assert await _settled(work, request, transaction) == "committed"
        assert await work.pending() == [3, 4, 5]

    async def test_c4_claims_side_by_side_share_no_row(self, work: WorkTable) -> None:
        async def claimed(name: str) -> list[int]:
            async with work.cursor.claim(work.request(name, rows=1)) as claim:
                await claim.commit()
                return [row["id"] for row in claim.rows]

        found = await asyncio.gather(*(claimed(f"f{number}/1") for number in range(5)))
        assert sorted(row for each in found for row in each) == [1, 2, 3, 4, 5]

    async def test_c5_errors_have_a_kind(self, work: WorkTable) -> None:
        for sql in ("SELECT id FROM nowhere", "DELETE FROM work", "BEGIN; SELECT 1", "SELEC"):
            with pytest.raises(ToolFailed) as raised:
                async with work.cursor.claim(work.request("f1/1", sql=sql)):
                    pytest.fail("the claim should have been refused")
            assert raised.value.failure.kind == "schema", sql
        assert await work.pending() == [1, 2, 3, 4, 5]

    async def test_c6_claims_that_are_over_leave_nothing_behind(self, work: WorkTable) -> None:
        transactions = {}
        for name in ("f1/s/1/1", "f2/s/1/1", "f3/other/1/1"):
            async with work.cursor.claim(work.request(name, rows=1)) as claim:
                transactions[name] = claim.transaction
                await claim.commit()
        before = await work.kept()
        over = ClaimsOver(frame="f5", stage="s", open_frames=("f2",))
        async with work.cursor.claim(work.request("f5/s/1/1", 1, over=over)):
            pass
        assert await work.kept() == before, "what was not committed has dropped nothing"
        async with work.cursor.claim(work.request("f5/s/1/2", 9, over=over)) as claim:
            await claim.commit()
        assert "f1/s/1/1" not in await work.kept()
        for name in ("f2/s/1/1", "f3/other/1/1"):
            assert await work.cursor.fate(work.request(name), transactions[name]) == "committed"

        last = ClaimsOver(frame="f6", stage="s", before="f4")
        async with work.cursor.claim(work.request("f6/s/1/1", over=last)) as claim:
            assert claim.rows == []
            await claim.commit()
        assert await work.kept() == []


async def _claim_and_fail(work: WorkTable) -> None:
    async with work.cursor.claim(work.request("f1/2")) as claim:
        assert claim.rows
        raise RuntimeError("in the middle")


async def _settled(work: WorkTable, request: ClaimRequest, transaction: str) -> Fate:
    """A server may need a moment to see that its client has gone."""
    for _ in range(ASKED_MAX):
        fate = await work.cursor.fate(request, transaction)
        if fate != "open":
            return fate
        await asyncio.sleep(0.05)
    return "open"


@asynccontextmanager
async def _other_process(
    work: WorkTable, ending: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """Claims rows there, tells the transaction, and waits to be killed."""
    asked = json.dumps({"factory": work.factory, "arguments": work.arguments(), "ending": ending})
    request = msgspec.json.encode(work.request("f1/1")).decode()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "noetl.testing.cursor_holder", asked, request),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        line = await process.stdout.readline()
        assert line, "the other process could not claim"
        yield process, line.decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
