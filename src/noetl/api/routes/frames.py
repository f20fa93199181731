"""Stages and frames: handed out to workers of any make, and shown to people."""

from typing import Annotated

import msgspec

from noetl.api.route import Asked, Nothing, get, post
from noetl.domain.frame_messages import (
    FrameAsk,
    FrameBeat,
    FrameCommit,
    FrameDone,
    FrameKept,
    LentFrame,
)
from noetl.domain.projection import QUERY_RECORDS_MAX
from noetl.kernel.ids import FrameId, StageId
from noetl.runtime.lineage import FramesAsked, FrameShown, StageShown


class FramesQuery(msgspec.Struct, frozen=True, kw_only=True):
    stage_id: str | None = None
    status: str | None = None
    after: str = ""  # the last id of the page before
    limit: Annotated[int, msgspec.Meta(ge=1, le=QUERY_RECORDS_MAX)] = 100


class Stages(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    stages: list[StageShown]


class Frames(msgspec.Struct, frozen=True, kw_only=True):
    execution_id: str
    frames: list[FrameShown]
    next_after: str | None = None  # there may be more


async def claim(asked: Asked[FrameAsk, Nothing]) -> list[LentFrame]:
    desk, stage_id = asked.services.stages, StageId(asked.path["stage_id"])
    asked.check_grant((await desk.stage(stage_id)).execution_id, stage_id)
    return await desk.claim(stage_id, asked.body)


async def heartbeat(asked: Asked[FrameBeat, Nothing]) -> FrameKept:
    return await asked.services.stages.heartbeat(await _frame(asked), asked.body)


async def commit(asked: Asked[FrameCommit, Nothing]) -> FrameDone:
    return await asked.services.stages.commit(await _frame(asked), asked.body)


async def _frame(asked: Asked[FrameBeat, Nothing] | Asked[FrameCommit, Nothing]) -> FrameId:
    frame_id = FrameId(asked.path["frame_id"])
    if asked.grant is not None:
        held = await asked.services.stages.frame(frame_id)
        asked.check_grant(held.running.execution_id, held.row.stage_id)
    return frame_id


async def stages(asked: Asked[Nothing, Nothing]) -> Stages:
    found = await asked.services.lineage.stages(asked.scope, asked.execution)
    return Stages(execution_id=asked.execution, stages=found)


async def frames(asked: Asked[Nothing, FramesQuery]) -> Frames:
    query = asked.query
    wanted = FramesAsked(
        stage_id=None if query.stage_id is None else StageId(query.stage_id),
        status=None if query.status is None else query.status.upper(),
        after=query.after,
        limit=query.limit,
    )
    found = await asked.services.lineage.frames(asked.scope, asked.execution, wanted)
    is_full = len(found) == query.limit
    return Frames(
        execution_id=asked.execution,
        frames=found,
        next_after=found[-1].frame_id if is_full else None,
    )


ROUTES = (
    post(
        "/api/stages/{stage_id}/frames/claim",
        "Frames of a stage for a worker",
        claim,
        body=FrameAsk,
        gives=list[LentFrame],
    ),
    post(
        "/api/frames/{frame_id}/heartbeat",
        "Keep the lease of a frame",
        heartbeat,
        body=FrameBeat,
        gives=FrameKept,
    ),
    post(
        "/api/frames/{frame_id}/commit",
        "The end of a frame",
        commit,
        body=FrameCommit,
        gives=FrameDone,
    ),
    get(
        "/api/executions/{execution_id}/stages",
        "Its stages, with where each belongs",
        stages,
        gives=Stages,
    ),
    get(
        "/api/executions/{execution_id}/frames",
        "Its frames, with their parents and holders",
        frames,
        query=FramesQuery,
        gives=Frames,
    ),
)
