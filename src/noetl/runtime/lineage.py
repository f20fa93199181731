"""The stages and frames of an execution: where each belongs, who held it, what became of it."""

import msgspec

from noetl.domain.execution.rows import FrameRow, StageRow, Surface
from noetl.domain.projection import QUERY_RECORDS_MAX, ProjectionQuery
from noetl.kernel.errors import ExecutionNotFound
from noetl.kernel.ids import ExecutionId, FrameId, StageId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import Scope
from noetl.kernel.snowflake import minted_at
from noetl.ports.event_log import EventLog
from noetl.ports.projection_store import ProjectionStore
from noetl.runtime.replay import Replay, ReplayRequest

FOLDED_EVENTS_MAX = 2_000
"""A longer log is not folded for a question: read models are a moment behind it."""

_STAGE = msgspec.json.Decoder(StageRow)
_FRAME = msgspec.json.Decoder(FrameRow)


class StageShown(StageRow, kw_only=True):
    """With its times, which ids of events tell: they are made when the event is."""

    started_at: Instant | None = None
    ended_at: Instant | None = None


class FrameShown(FrameRow, kw_only=True):
    created_at: Instant | None = None
    started_at: Instant | None = None
    completed_at: Instant | None = None


class FramesAsked(msgspec.Struct, frozen=True, kw_only=True):
    """`after` is the last id of the page before."""

    stage_id: StageId | None = None
    status: str | None = None
    after: str = ""
    limit: int = 100


class Lineage:
    def __init__(self, log: EventLog, projections: ProjectionStore) -> None:
        self._log = log
        self._projections = projections
        self._replay = Replay(log)

    async def stages(self, scope: Scope, execution: ExecutionId) -> list[StageShown]:
        """In the order of their opening."""
        if await self._is_folded(scope, execution):
            found, _ = await self._folded(scope, execution)
        else:
            found = []
            while True:
                after = f"{execution}/{found[-1].stage_id}" if found else ""
                page = await self._page(scope, execution, "stage", after)
                found += [_STAGE.decode(each) for each in page]
                if len(page) < QUERY_RECORDS_MAX:
                    break
        return [_shown_stage(row) for row in sorted(found, key=_stage_id)]

    async def frames(
        self, scope: Scope, execution: ExecutionId, asked: FramesAsked
    ) -> list[FrameShown]:
        """In the order of their first dispatch, a page at a time."""
        if await self._is_folded(scope, execution):
            _, found = await self._folded(scope, execution)
            rows = [row for row in sorted(found, key=_frame_id) if _is_wanted(row, asked)]
            return [_shown_frame(row) for row in rows[: asked.limit]]
        where = {"stage_id": asked.stage_id, "status": asked.status}
        query = ProjectionQuery(
            scope=scope,
            projection_type="frame",
            execution_id=execution,
            where={name: value for name, value in where.items() if value is not None},
            after_id=f"{execution}/{asked.after}" if asked.after else "",
            limit=asked.limit,
        )
        page = await self._projections.query(query)
        return [_shown_frame(_FRAME.decode(each.canonical)) for each in page]

    async def _is_folded(self, scope: Scope, execution: ExecutionId) -> bool:
        """Whether read models are behind a log that is short enough to be asked itself."""
        if await self._log.scope_of(execution) != scope:
            raise ExecutionNotFound(execution)
        head = await self._log.head(execution)
        record = await self._projections.load(scope, "execution", execution)
        is_behind = record is None or record.version < head.version
        return is_behind and head.version <= FOLDED_EVENTS_MAX

    async def _folded(
        self, scope: Scope, execution: ExecutionId
    ) -> tuple[list[StageRow], list[FrameRow]]:
        stages: list[StageRow] = []
        frames: list[FrameRow] = []

        def keep(_surface: Surface, row: msgspec.Struct) -> None:
            if isinstance(row, StageRow):
                stages.append(row)
            elif isinstance(row, FrameRow):
                frames.append(row)

        request = ReplayRequest(scope=scope, execution_id=execution)
        state = (await self._replay.state(request, keep)).state
        return [*stages, *state.stages.values()], [*frames, *state.frames.values()]

    async def _page(
        self, scope: Scope, execution: ExecutionId, kind: str, after: str
    ) -> list[bytes]:
        query = ProjectionQuery(
            scope=scope,
            projection_type=kind,
            execution_id=execution,
            after_id=after,
            limit=QUERY_RECORDS_MAX,
        )
        return [record.canonical for record in await self._projections.query(query)]


def _shown_stage(row: StageRow) -> StageShown:
    return StageShown(
        **msgspec.structs.asdict(row),
        started_at=_time_of(row.opened_event_id),
        ended_at=_time_of(row.closed_event_id),
    )


def _shown_frame(row: FrameRow) -> FrameShown:
    return FrameShown(
        **msgspec.structs.asdict(row),
        created_at=_time_of(row.frame_id),
        started_at=_time_of(row.started_event_id),
        completed_at=_time_of(row.terminal_event_id),
    )


def _time_of(identifier: str | None) -> Instant | None:
    return None if identifier is None or not identifier.isdecimal() else minted_at(identifier)


def _is_wanted(row: FrameRow, asked: FramesAsked) -> bool:
    return (
        row.frame_id > asked.after
        and asked.stage_id in (None, row.stage_id)
        and asked.status in (None, row.status)
    )


def _stage_id(row: StageRow) -> StageId:
    return row.stage_id


def _frame_id(row: FrameRow) -> FrameId:
    return row.frame_id
