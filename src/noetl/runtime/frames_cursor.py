"""The rows of a cursor's frame: claimed by its holder, or by one before it.

The claim stays open until the log knows its rows. So a holder that dies before leaves them in the
database, and one that dies after leaves them to the next holder, which asks what became of the
claim.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import msgspec

from noetl.domain.playbook.model import Playbook
from noetl.domain.work import ClaimedRows, FrameStart, FrameWork
from noetl.kernel import canonical_json
from noetl.kernel.errors import ClaimLost, PayloadError
from noetl.kernel.ids import WorkerId
from noetl.kernel.instant import plus
from noetl.kernel.snowflake import first_at
from noetl.pipeline.claims import PreparedClaim
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Hold, Job
from noetl.pipeline.payloads import MEDIA_TYPE, as_reference
from noetl.ports.clock import Clock
from noetl.ports.cursor import ClaimRequest, ClaimsOver, Cursor, Cursors, OpenClaim
from noetl.ports.tool import ToolFailed
from noetl.ports.work_desk import WorkDesk
from noetl.results.store import ResultStore
from noetl.runtime.worker_commands import step_of
from noetl.runtime.worker_patience import insisted

ROWS_BYTES_MAX = 4_096
"""What a frame's event holds of the rows that it claimed; more than that lies in the store."""

IDLE_PART = 0.5
"""The part of a lease for which a claim may lie open: over before anybody else has the frame."""

CLAIMS_KEPT_SECONDS = 90 * 24 * 3_600.0
"""For how long a database in a file keeps the name of a claim whose frame did not end: an execution
may be paused, and a loop that failed may be taken up by a person."""

ID_DIGITS = 19
TRIES_MAX = 5
PAUSE_SECONDS_FIRST = 0.2
"""A database that is away for a moment does not cost the frame one of its attempts."""

_Answer = TypeVar("_Answer")


class ClaimCalls(Protocol):
    """The interpreter, as far as claims need it."""

    async def claim(
        self, job: Job, policy: Mapping[str, Any], worker_slot_id: str
    ) -> PreparedClaim: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorRows:
    """What a worker claims rows with."""

    drivers: Cursors
    calls: ClaimCalls
    desk: WorkDesk
    results: ResultStore
    clock: Clock

    async def found(
        self, work: FrameWork, playbook: Playbook, hold: Hold, worker: WorkerId
    ) -> FrameWork:
        """The work with its rows; none: there was nothing to claim, or the claim was undone.

        Raises ClaimLost, ToolFailed, and what rendering raises.
        """
        job = Job(
            scope=work.scope,
            playbook=playbook,
            step=step_of(playbook, work.step),
            visit=work.visit,
            facts=work.facts,
            ctx=work.facts.ctx,
            attempt=work.holder,
            stage_id=work.stage_id,
        )
        prepared = await self.calls.claim(job, work.policy, worker)
        driver = self.drivers.get(prepared.call.kind)
        claim = _Claim(self, driver, prepared, work, hold)
        if work.claimed is not None:
            return await claim.taken_over(work.claimed)
        return await claim.made(worker)


@dataclass(slots=True)
class _Claim:
    rows: CursorRows
    driver: Cursor
    prepared: PreparedClaim
    work: FrameWork
    hold: Hold
    is_told: bool = False  # from then on only the database knows what becomes of it

    async def made(self, worker: WorkerId) -> FrameWork:
        for number in range(1, TRIES_MAX):
            try:
                return await self._try(worker, number)
            except ToolFailed as error:
                if not error.failure.retryable or self.is_told:
                    raise
            await self._pause(number)
        return await self._try(worker, TRIES_MAX)

    async def _try(self, worker: WorkerId, number: int) -> FrameWork:
        self.hold.check()
        async with self.driver.claim(self._request(number)) as claim:
            rows: list[Any] = self.prepared.secrets.scrub(claim.rows)
            first_index = await self._tell(claim, rows, worker) if rows else 0
            self.hold.check()
            await claim.commit()
        return _with_rows(self.work, first_index, rows)

    async def _tell(self, claim: OpenClaim, rows: list[Any], worker: WorkerId) -> int:
        work, desk, check = self.work, self.rows.desk, self.hold.check
        start = FrameStart(
            execution_id=work.execution_id,
            stage_id=work.stage_id,
            frame_id=work.frame_id,
            attempt=work.attempt,
            worker_id=worker,
            claimed=await self._insisted(lambda: self._staged(claim.transaction, rows)),
        )
        self.is_told = True
        answer = await insisted(lambda: desk.frame_started(start), check, self.rows.clock)
        if answer.next_action == "stop" or answer.first_index is None:
            raise ClaimLost(f"frame {work.frame_id}", "was stopped")
        return answer.first_index

    async def _staged(self, transaction: str, rows: list[Any]) -> ClaimedRows:
        """A few small rows go with the message."""
        data = canonical_json.encode(rows)
        if len(data) <= ROWS_BYTES_MAX:
            return ClaimedRows(transaction=transaction, row_count=len(rows), rows=rows)
        stored = await self.rows.results.payloads.put(self.work.scope, data, MEDIA_TYPE)
        reference = msgspec.structs.replace(as_reference(stored), row_count=len(rows))
        return ClaimedRows(transaction=transaction, row_count=len(rows), reference=reference)

    async def taken_over(self, claimed: ClaimedRows) -> FrameWork:
        """A claim that is still open will become one or the other, and not take a lease for it."""
        ends_at = self.rows.clock.monotonic() + self.work.lease_seconds
        number = 1
        while True:
            self.hold.check()
            fate = await self._fate(claimed)
            if fate == "committed":
                return _with_rows(self.work, self.work.first_index, await self._recorded(claimed))
            if fate == "aborted":
                # A name that old may have been dropped: rows that are staged are not.
                rows = await self._recorded(claimed) if self._is_old() else []
                return _with_rows(self.work, self.work.first_index, rows)
            if self.rows.clock.monotonic() >= ends_at:
                raise failed("timeout", _OPEN, retryable=True)
            await self._pause(number)
            number = min(number + 1, TRIES_MAX)

    async def _fate(self, claimed: ClaimedRows) -> str:
        request = self._request(1)
        for number in range(1, TRIES_MAX):
            try:
                return await self.driver.fate(request, claimed.transaction)
            except ToolFailed as error:
                if not error.failure.retryable:
                    raise
            await self._pause(number)
            self.hold.check()
        return await self.driver.fate(request, claimed.transaction)

    async def _recorded(self, claimed: ClaimedRows) -> list[Any]:
        if claimed.rows is not None:
            return claimed.rows
        reference = claimed.reference
        if reference is None:
            raise PayloadError(f"frame {self.work.frame_id} has neither rows nor a reference")
        results, scope = self.rows.results, self.work.scope
        rows: list[Any] = await self._insisted(
            lambda: results.content(scope, reference.uri, reference)
        )
        return rows

    async def _insisted(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        return await insisted(ask, self.hold.check, self.rows.clock)

    def _is_old(self) -> bool:
        return _sorted(self.work.frame_id) < self._oldest()

    def _oldest(self) -> str:
        """Frames that were handed out before this one are too old."""
        kept_from = plus(self.rows.clock.now(), seconds=-CLAIMS_KEPT_SECONDS)
        return _sorted(first_at(kept_from))

    def _request(self, number: int) -> ClaimRequest:
        work = self.work
        frame = _sorted(work.frame_id)
        return ClaimRequest(
            call=self.prepared.call,
            name=f"{frame}/{work.stage_id}/{work.attempt}/{number}",
            idle_seconds_max=work.lease_seconds * IDLE_PART,
            over=ClaimsOver(
                frame=frame,
                stage=work.stage_id,
                open_frames=tuple(map(_sorted, work.open_frames)),
                before=self._oldest(),
            ),
        )

    async def _pause(self, number: int) -> None:
        await self.rows.clock.sleep(PAUSE_SECONDS_FIRST * 2 ** (number - 1))


_OPEN = (
    "an earlier holder's claim is still open in the database, so it is not known whether its rows"
    " are ours; end its session there if it does not go away"
)


def _sorted(snowflake: str) -> str:
    """As text that sorts by its number: ids have 18 digits today, and will have 19."""
    return snowflake.zfill(ID_DIGITS)


def _with_rows(work: FrameWork, first_index: int, rows: list[Any]) -> FrameWork:
    return msgspec.structs.replace(
        work, first_index=first_index, row_count=len(rows), rows=rows, claimed=None
    )
