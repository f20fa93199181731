"""Where a result lies: from its name and the cell's placement to the key of its object.

Nothing is looked up. The day comes from the execution's id and the shard from a hash of its name,
so whoever knows the coordinates knows the key; writers and readers must have one placement.
"""

import re

import msgspec

from noetl.domain.naming.fnv import fnv1a64
from noetl.domain.naming.result_name import (
    RESULTS,
    DatasetName,
    ResultName,
    dataset_at,
    number,
    result_at,
)
from noetl.domain.naming.segment import check_given, escape, shortened, unescape
from noetl.kernel.errors import NameInvalid, PlacementMismatch
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.kernel.snowflake import minted_at

SHARD_COUNT = 256
SHARD_COUNT_MAX = 10_000  # four digits in a key
PLACE_PATTERN = r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,62}\Z"
"""How environments, regions and cells are called: the same in keys, settings and subjects."""

_PLACE = re.compile(PLACE_PATTERN)
_SNOWFLAKE = re.compile(r"0|[1-9][0-9]{0,18}")
_SNOWFLAKE_MAX = (1 << 63) - 1
_EXTENSION = re.compile(r"[a-z0-9]{1,16}")
_MANIFEST = "dataset"
_FIELDS = ("env", "region", "cell", "shard", "tenant", "project", "date", "execution")
_FILE = re.compile(
    r"(?P<stem>[a-z0-9]+)(?:\.v(?P<visit>[1-9][0-9]{0,18}))?\.(?P<extension>[a-z0-9]{1,16})"
)


class CellPlacement(msgspec.Struct, frozen=True):
    """What keys say beside the name: part of the address, equal on every writer and reader."""

    env: str
    region: str
    cell: str
    shard_count: int = SHARD_COUNT

    def __post_init__(self) -> None:
        for field in ("env", "region", "cell"):
            check_place(field, getattr(self, field))
        if not 1 <= self.shard_count <= SHARD_COUNT_MAX:
            raise NameInvalid(f"shard_count {self.shard_count}", f"is not 1 to {SHARD_COUNT_MAX}")

    def __str__(self) -> str:
        named = f"env={self.env} region={self.region} cell={self.cell}"
        return f"{named} shard_count={self.shard_count}"


class StoreAddress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The store that somebody writes to. Without an endpoint it is the provider's own, or that
    of the writer's environment, which nobody else knows."""

    url: str
    endpoint: str | None = None

    def __str__(self) -> str:
        return self.url if self.endpoint is None else f"{self.url} at {self.endpoint}"

    def may_be(self, other: "StoreAddress") -> bool:
        is_same_url = self.url.rstrip("/") == other.url.rstrip("/")
        endpoints = {each.rstrip("/") for each in (self.endpoint, other.endpoint) if each}
        return is_same_url and len(endpoints) <= 1


class PhysicalKey(msgspec.Struct, frozen=True, kw_only=True):
    """What a key says. How many shards there are it does not say."""

    env: str
    region: str
    cell: str
    shard: int
    name: ResultName | DatasetName
    extension: str


def check_place(field: str, name: str) -> None:
    if not _PLACE.fullmatch(name):
        raise NameInvalid(f"{field} {name!r}", "has other than letters, digits, - and _")


def check_same_placement(server: CellPlacement, worker: CellPlacement) -> None:
    """Refuse a worker that would write under other keys than the server reads."""
    if server != worker:
        raise PlacementMismatch(server=str(server), worker=str(worker))


def check_same_store(server: StoreAddress, worker: StoreAddress) -> None:
    """Refuse a worker that would write where the server does not look."""
    if not server.may_be(worker):
        raise PlacementMismatch(server=str(server), worker=str(worker))


def shard_of(
    tenant: str, project: str, execution: ExecutionId, shard_count: int = SHARD_COUNT
) -> int:
    """FNV-1a 64 over the UTF-8 of `tenant/project/execution`, as the names are, not escaped."""
    for field, name in (("tenant", tenant), ("project", project), ("execution", execution)):
        check_given(field, name)
    return fnv1a64(f"{tenant}/{project}/{execution}".encode()) % shard_count


def physical_key(name: ResultName, placement: CellPlacement, extension: str) -> str:
    """The key of a result's object below the root of its cell's bucket."""
    return execution_prefix(name.scope, name.execution_id, placement) + _below(name, extension)


def dataset_key(name: DatasetName, placement: CellPlacement, extension: str = "json") -> str:
    """The key of the manifest that lists the objects of a stage."""
    return execution_prefix(name.scope, name.execution_id, placement) + _below(name, extension)


def execution_prefix(scope: Scope, execution: ExecutionId, placement: CellPlacement) -> str:
    """What the keys of all results of an execution begin with."""
    tenant, project = scope
    shard = shard_of(tenant, project, execution, placement.shard_count)
    return _prefix((placement.env, placement.region, placement.cell), shard, scope, execution)


def parse_physical_key(key: str) -> PhysicalKey | None:
    """The coordinates in a key; None when it is not exactly a key that we write, or one of a
    step whose name had to be shortened: then the name cannot be read from it."""
    root, *parts = key.split("/")
    pairs = [part.partition("=") for part in parts[: len(_FIELDS)]]
    if root != "noetl" or tuple(field for field, _, _ in pairs) != _FIELDS:
        return None
    try:
        found = _read([value for _, _, value in pairs], parts[len(_FIELDS) :])
        where = (found.env, found.region, found.cell)
        prefix = _prefix(where, found.shard, found.name.scope, found.name.execution_id)
        return found if prefix + _below(found.name, found.extension) == key else None
    except NameInvalid:
        return None


def _prefix(where: tuple[str, str, str], shard: int, scope: Scope, execution: ExecutionId) -> str:
    tenant, project = scope
    values = (
        *where,
        f"{shard:04d}",
        escape(tenant),
        escape(project),
        _day_of(execution),
        escape(execution),
    )
    pairs = (f"{field}={value}" for field, value in zip(_FIELDS, values, strict=True))
    return f"noetl/{'/'.join(pairs)}/"


def _day_of(execution: ExecutionId) -> str:
    """The UTC day on which the id was made; a clock would give another one at midnight."""
    if not _SNOWFLAKE.fullmatch(execution) or int(execution) > _SNOWFLAKE_MAX:
        raise NameInvalid(f"execution {execution!r}", "has no day; its id must be a snowflake")
    return minted_at(execution)[:10]


def _below(name: ResultName | DatasetName, extension: str) -> str:
    if not _EXTENSION.fullmatch(extension):
        raise NameInvalid(f"extension {extension!r}", "has other than small letters and digits")
    visit = "" if name.visit == 1 else f".v{name.visit}"
    step = shortened(escape(name.step_part))
    if isinstance(name, DatasetName):
        return f"{RESULTS}/{step}/{_MANIFEST}{visit}.{extension}"
    return f"{RESULTS}/{step}/{name.frame}/{name.row}/{name.attempt}{visit}.{extension}"


def _read(values: list[str], below: list[str]) -> PhysicalKey:
    env, region, cell, shard, tenant, project, _, execution = values
    check_place("env", env)
    check_place("region", region)
    check_place("cell", cell)
    name, extension = _read_below(
        Scope(unescape(tenant), unescape(project)), unescape(execution), below
    )
    return PhysicalKey(
        env=env,
        region=region,
        cell=cell,
        shard=number("shard", shard.lstrip("0") or "0"),
        name=name,
        extension=extension,
    )


def _read_below(
    scope: Scope, execution: str, below: list[str]
) -> tuple[ResultName | DatasetName, str]:
    file = _FILE.fullmatch(below[-1]) if below else None
    if file is None:
        raise NameInvalid(repr("/".join(below)), "names no file of a result")
    visit, stem = int(file["visit"] or 1), file["stem"]
    match below[:-1]:
        case [_, step] if stem == _MANIFEST:
            return dataset_at(scope, execution, unescape(step), visit), file["extension"]
        case [_, step, frame, row]:
            place = (execution, unescape(step))
            return result_at(scope, place, (frame, row, stem), visit), file["extension"]
        case _:
            raise NameInvalid(repr("/".join(below)), "names no file of a result")
