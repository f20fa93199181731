"""Results by name: where one can be had, and what it is."""

from http import HTTPStatus
from typing import Any

import msgspec

from noetl.api.problems import Refused
from noetl.api.route import Asked, Nothing, get
from noetl.domain.naming.access_plan import AccessPlan, Asking, Placed, Purpose, resolve
from noetl.domain.naming.locator import Locality
from noetl.domain.naming.result_name import parse_results
from noetl.domain.payload import is_payload_uri
from noetl.kernel.errors import ExecutionNotFound, NameInvalid, PayloadMissing
from noetl.results.store import ResultStore
from noetl.results.writer import encoded_as
from noetl.runtime.materializer import Materializer, UnfilledResult
from noetl.runtime.result_lookup import FoundResult, bare, find_result, value_of

RESOLVED_BYTES_MAX = 64 * 1024 * 1024
"""What one answer may hold decoded; whoever wants more asks for the plan and reads the object."""

UNFILLED_SHOWN_MAX = 1_000


class PlanQuery(msgspec.Struct, frozen=True, kw_only=True):
    uri: str
    purpose: Purpose = "read"
    region: str | None = None  # of who asks
    preferred_region: str | None = None


class ReferenceQuery(msgspec.Struct, frozen=True, kw_only=True):
    ref: str


class Unfilled(msgspec.Struct, frozen=True, kw_only=True):
    results: tuple[UnfilledResult, ...]
    count: int  # of all of them


async def plan(asked: Asked[Nothing, PlanQuery]) -> AccessPlan:
    """Readers bring credentials of their own: the plan names places, and opens none of them."""
    services, query = asked.services, asked.query
    if parse_results(query.uri).scope != asked.scope:
        raise PayloadMissing(query.uri)  # another tenant's is not there for this one
    asking = Asking(Locality(region=query.region), query.purpose, query.preferred_region)
    placed = Placed(services.placement, services.cells)
    failed = services.results.chain.places.failed
    made = resolve(query.uri, placed, asking, failed)
    if query.purpose == "write":
        return made
    try:
        return await _stored(services.results, made)
    except PayloadMissing:
        found = await _named(asked, query.uri)
        if found is None:
            raise
    if found.reference is None:
        return msgspec.structs.replace(made, tier="inline", keys=(), locations=())
    holder = resolve(found.reference.uri, placed, asking, failed)
    return await _stored(services.results, holder)


async def value(asked: Asked[Nothing, ReferenceQuery]) -> Any:
    """All of it, as clients know it that have only the reference."""
    uri, results = asked.query.ref, asked.services.results
    if is_payload_uri(uri):
        return bare(await results.content(asked.scope, uri))
    try:
        name = parse_results(uri)
    except NameInvalid as error:
        raise Refused(HTTPStatus.BAD_REQUEST, error.code, str(error)) from error
    if name.scope != asked.scope:
        raise PayloadMissing(uri)
    found = await _named(asked, uri)
    if found is not None:
        known = found.reference
        _check_length(uri, None if known is None else known.byte_length)
        return await value_of(found, results, asked.scope)
    # Nothing names it: it was not reported yet.
    placed = Placed(asked.services.placement, asked.services.cells)
    _check_length(uri, (await _stored(results, resolve(uri, placed))).byte_length)
    return bare(await results.content(asked.scope, uri))


async def unfilled(asked: Asked[Nothing, Nothing]) -> Unfilled:
    """What the materializer found missing or damaged, and could not fill in."""
    services = asked.services
    materializer = Materializer(services.log, services.projections, services.results)
    found = await materializer.unfilled(asked.scope)
    return Unfilled(results=tuple(found[:UNFILLED_SHOWN_MAX]), count=len(found))


async def _named(asked: Asked[Nothing, Any], uri: str) -> FoundResult | None:
    services = asked.services
    try:
        return await find_result(services.log, services.results, asked.scope, uri)
    except ExecutionNotFound as error:
        raise PayloadMissing(uri) from error


def _check_length(uri: str, byte_length: int | None) -> None:
    if (byte_length or 0) > RESOLVED_BYTES_MAX:
        raise Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "result_too_large",
            f"{uri} has {byte_length} bytes; ask /api/results/resolve where it lies and"
            " read it there",
        )


async def _stored(results: ResultStore, made: AccessPlan) -> AccessPlan:
    """With the key of the encoding that is there."""
    facts = await results.chain.places.first_there(made.keys)
    if facts is None:
        raise PayloadMissing(made.uri)
    media_type, byte_length = encoded_as(facts.key), facts.byte_length
    return msgspec.structs.replace(
        made, key=facts.key, media_type=media_type, byte_length=byte_length
    )


ROUTES = (
    get(
        "/api/results/unfilled",
        "Results that events name and the store lacks",
        unfilled,
        gives=Unfilled,
    ),
    get(
        "/api/results/resolve",
        "Where a result can be had, the best place first",
        plan,
        query=PlanQuery,
        gives=AccessPlan,
    ),
    get(
        "/api/result/resolve",
        "The value of a stored result",
        value,
        query=ReferenceQuery,
        gives=Any,
    ),
)
