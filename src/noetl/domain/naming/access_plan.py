"""From a result's name to the places where its object can be had, the best one first.

Nothing is asked of any store. Where an object fails over to a replica, its name and its key stay.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from noetl.domain.naming.cells import Cell, CellRegistry, Provider, Replica
from noetl.domain.naming.locator import Locality
from noetl.domain.naming.placement import CellPlacement, dataset_key, physical_key
from noetl.domain.naming.result_name import DatasetName, parse_results
from noetl.kernel.ids import ExecutionId

Purpose = Literal["read", "write"]
ReplicaState = Literal["primary", "async_replica"]

EXTENSIONS = ("feather", "json")
"""The encodings of results; only the store knows which of them one has."""


class Location(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One place that has, or will have, the object. Credentials are its reader's own."""

    provider: Provider
    url: str
    region: str
    replica_state: ReplicaState
    endpoint: str | None = None
    healthy: bool = True  # as far as whoever made the plan knows

    @property
    def name(self) -> str:
        return self.url if self.endpoint is None else f"{self.url} at {self.endpoint}"


class Asking(NamedTuple):
    """Who asks, and what for."""

    requester: Locality = Locality()
    purpose: Purpose = "read"
    preferred_region: str | None = None


ANYONE = Asking()


class AccessPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`keys` below the root of every location; one of them once the encoding is known.

    A small result is `inline`: in its event, and so at no location.
    """

    uri: str
    execution_id: ExecutionId
    cell: str
    purpose: Purpose
    keys: tuple[str, ...]
    locations: tuple[Location, ...]
    key: str | None = None
    media_type: str | None = None
    byte_length: int | None = None
    tier: Literal["object", "inline"] = "object"


class Placed(NamedTuple):
    """What everybody agrees on: the form of keys, and where the cells are."""

    placement: CellPlacement
    registry: CellRegistry


def resolve(
    uri: str, placed: Placed, asking: Asking = ANYONE, failed: frozenset[str] = frozenset()
) -> AccessPlan:
    """`failed` are names of locations that did not answer lately. Raises NameInvalid."""
    name = parse_results(uri)
    placement = placed.placement
    if isinstance(name, DatasetName):
        keys: tuple[str, ...] = (dataset_key(name, placement),)
    else:
        keys = tuple(physical_key(name, placement, extension) for extension in EXTENSIONS)
    cell = placed.registry.find(placement.cell)
    return AccessPlan(
        uri=name.uri,
        execution_id=name.execution_id,
        cell=cell.name,
        purpose=asking.purpose,
        keys=keys,
        locations=tuple(in_order(locations_of(cell, failed), asking)),
    )


def locations_of(cell: Cell, failed: frozenset[str] = frozenset()) -> list[Location]:
    """The primary first, then its replicas as the registry lists them."""
    places: tuple[Cell | Replica, ...] = (cell, *cell.replicas)
    found = [
        Location(
            provider=place.provider,
            url=place.url,
            region=place.region,
            replica_state="primary" if place is cell else "async_replica",
            endpoint=place.endpoint,
        )
        for place in places
    ]
    return [msgspec.structs.replace(each, healthy=each.name not in failed) for each in found]


def in_order(locations: Sequence[Location], asking: Asking) -> list[Location]:
    """Healthy before failed, near before far, the primary before what is copied from it. Only the
    primary is written to."""
    if asking.purpose == "write":
        return [each for each in locations if each.replica_state == "primary"]
    regions = [asking.preferred_region, asking.requester.region]

    def distance(location: Location) -> int:
        return regions.index(location.region) if location.region in regions else len(regions)

    return sorted(
        locations,
        key=lambda each: (not each.healthy, distance(each), each.replica_state != "primary"),
    )
