"""The upkeep of stored results: collect what nobody can ask for, verify and repair the rest."""

from typing import Annotated

import msgspec

from noetl.api.route import Asked, Nothing, post
from noetl.kernel.errors import CollectionRefused, RequestInvalid
from noetl.kernel.ids import ExecutionId
from noetl.runtime.results_gc import CollectionReport, CollectionRequest
from noetl.runtime.results_repair import Verification

EXECUTIONS_MAX = 1_000


class VerifyAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Executions by name, or all of them."""

    executions: Annotated[list[str], msgspec.Meta(max_length=EXECUTIONS_MAX)] = []
    all: bool = False
    repair: bool = False


async def gc(asked: Asked[CollectionRequest, Nothing]) -> CollectionReport:
    """A dry run unless it is told otherwise."""
    services = asked.services
    try:
        report = await services.collector.collect(asked.scope, asked.body)
    except CollectionRefused:
        services.metrics.tier.refused()
        raise
    services.metrics.tier.collected(report)
    return report


async def verify(asked: Asked[VerifyAsked, Nothing]) -> Verification:
    wanted = asked.body
    if bool(wanted.executions) == wanted.all:
        raise RequestInvalid('name executions, or say {"all": true}')
    executions = None if wanted.all else [ExecutionId(each) for each in wanted.executions]
    async with asked.services.repairs() as repairs:
        found = await repairs.verify(asked.scope, executions, repair=wanted.repair)
    asked.services.metrics.tier.verified(found)
    return found


ROUTES = (
    post(
        "/api/internal/result-tier/gc",
        "List results that nobody can ask for any more, or delete them",
        gc,
        body=CollectionRequest,
        gives=CollectionReport,
    ),
    post(
        "/api/internal/result-tier/verify",
        "Read what the log names, and bring back what is lost",
        verify,
        body=VerifyAsked,
        gives=Verification,
    ),
)
