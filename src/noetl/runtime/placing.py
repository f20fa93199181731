"""How far work is from what it reads, and what its event says of that, outside of its checksum."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.distance import Distance, distance, is_within
from noetl.domain.naming.locator import Locality, WorkerLocatorParts, worker_locator
from noetl.domain.naming.result_name import parse_result_name
from noetl.domain.work import WorkerIdentity
from noetl.kernel.errors import NameInvalid
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope

LOCALITY = "locality"
_LEVELS = Locality.__struct_fields__


class Beside(NamedTuple):
    """What stands beside an event: facts about the giving of work, never part of a state."""

    meta: dict[str, Any]
    annotations: dict[str, Any]


def source_of(
    reference: ResultReference | None,
    execution: ExecutionId,
    places: Mapping[StepName, Locality],
) -> Locality | None:
    """Where the rows were made; None: nobody knows, or they are in the events."""
    if reference is None or not places:
        return None
    try:
        name = parse_result_name(reference.uri)
    except NameInvalid:  # it goes by its content, or many have made it
        return None
    return places.get(name.step) if name.execution_id == execution else None


def told_of(scope: Scope, worker: WorkerIdentity, source: Locality | None = None) -> Beside:
    meta: dict[str, Any] = {}
    if source is not None:
        meta["source_locality"] = msgspec.to_builtins(source)
        meta["placement"] = _placement(worker, source)
    place = worker.locality
    if place is None:
        return Beside(meta, {})
    parts = WorkerLocatorParts(
        scope=scope, worker=worker.worker_id, **msgspec.structs.asdict(place)
    )
    locator = worker_locator(parts).uri
    return Beside(meta, {LOCALITY: msgspec.to_builtins(place), "worker_locator": locator})


def reached_by(worker: WorkerIdentity, source: Locality) -> Distance:
    """How far the rows are from where it wants them; that is where it is, if it does not say."""
    return distance(worker.near or worker.locality or Locality(), source)


def _placement(worker: WorkerIdentity, source: Locality) -> dict[str, Any]:
    reached = reached_by(worker, source)
    told: dict[str, Any] = {
        "distance": reached,
        "max_distance": worker.distance_max,
        "within_max_distance": is_within(reached, worker.distance_max),
    }
    if worker.near is not None:
        told["measured_from"] = msgspec.to_builtins(worker.near)
    return told


def place_in(annotations: Mapping[str, Any]) -> Locality | None:
    """What an event of any build says of the worker's place."""
    told = annotations.get(LOCALITY)
    if not isinstance(told, dict):
        return None
    known = {level: told[level] for level in _LEVELS if isinstance(told.get(level), str)}
    return Locality(**known) if known else None


def source_told(cursor: Mapping[str, Any]) -> Locality | None:
    """Where a worker by frames knows its rows to be."""
    for name in ("source_locality", "producer_locality"):
        found = place_in({LOCALITY: cursor.get(name)})
        if found is not None:
            return found
    return None
