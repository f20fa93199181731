"""The lineage of a step, and the results of an execution by their names."""

from typing import Annotated

import msgspec

from noetl.api.route import Asked, Nothing, get
from noetl.kernel.ids import StepName
from noetl.runtime.trace import (
    RESULTS_SHOWN_MAX,
    VISITS_SHOWN_MAX,
    ResultsPage,
    StepTrace,
    TraceRequest,
    Traces,
)

Passed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class TraceAsked(msgspec.Struct, frozen=True, kw_only=True):
    visit: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None  # None: the newest
    after: Passed = 0  # `next_after` of the page before
    limit: Annotated[int, msgspec.Meta(ge=1, le=VISITS_SHOWN_MAX)] = 100


class ResultsAsked(msgspec.Struct, frozen=True, kw_only=True):
    after: Passed = 0  # `next_after` of the page before
    limit: Annotated[int, msgspec.Meta(ge=1, le=RESULTS_SHOWN_MAX)] = 100


async def trace(asked: Asked[Nothing, TraceAsked]) -> StepTrace:
    query = asked.query
    request = TraceRequest(
        scope=asked.scope,
        execution_id=asked.execution,
        step=StepName(asked.path["step"]),
        visit=query.visit,
        after=query.after,
        limit=query.limit,
    )
    return await Traces(asked.services.log).trace(request)


async def results(asked: Asked[Nothing, ResultsAsked]) -> ResultsPage:
    query = asked.query
    return await Traces(asked.services.log).results(
        asked.scope, asked.execution, after=query.after, limit=query.limit
    )


ROUTES = (
    get(
        "/api/executions/{execution_id}/trace/{step:path}",
        "The lineage of a step, back to the start",
        trace,
        query=TraceAsked,
        gives=StepTrace,
    ),
    get(
        "/api/executions/{execution_id}/results",
        "Its results by name: where they lie, and how large they are",
        results,
        query=ResultsAsked,
        gives=ResultsPage,
    ),
)
