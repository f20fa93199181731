"""Every `noetl://` name: parsed and built here, and nowhere else.

Three shapes, told apart by the first part as it is written, before anything is decoded:

    noetl://tenant/<t>/org/<o>/…/<kind>/<id>            a resource: pairs from coarse to fine
    noetl://<tenant>/<project>/<kind>/<path>@<version>  a logical name
    noetl://execution/<eid>/result/<name>/<id>          an older reference to a result, read only

A tenant may itself be called `tenant` or `execution`. A logical name then escapes the first letter
(`%74enant`, `%65xecution`), which no resource and no older reference ever does: every name has one
text, and every text one meaning.
"""

import re

import msgspec

from noetl.domain.naming.segment import check_given, escape, unescape
from noetl.kernel.errors import NameInvalid
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope

SCHEME = "noetl://"

KNOWN_RESOURCE_KINDS = frozenset(
    {
        "cache", "cell", "cluster", "command", "coordinator", "dataset", "execution", "frame",
        "lease", "materializer", "node", "org", "partition", "payload", "projector", "region",
        "shard", "stage", "stream", "tenant", "worker", "zone",
    }
)  # fmt: skip
"""What builders name. Parsing takes other kinds too: a newer program may know more of them."""

_KEY = re.compile(r"[a-z][a-z0-9_]*")
_RESERVED = {"tenant": "%74enant", "execution": "%65xecution"}


class Locality(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where something is, from coarse to fine; None is what nobody says."""

    region: str | None = None
    zone: str | None = None
    cluster: str | None = None
    node: str | None = None


class ResourceLocator(msgspec.Struct, frozen=True):
    """Pairs of kind and name; the last pair is the resource, those before it say where it is."""

    pairs: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        kinds = [kind for kind, _ in self.pairs]
        if kinds[:1] != ["tenant"]:
            raise NameInvalid("a resource", "begins with its tenant: noetl://tenant/<tenant>/…")
        for kind, name in self.pairs:
            if not _KEY.fullmatch(kind):
                raise NameInvalid(repr(kind), "is no kind; use small letters, digits and _")
            if kinds.count(kind) > 1:
                raise NameInvalid(repr(kind), "is there twice; name each kind once")
            check_given(kind, name)

    @property
    def uri(self) -> str:
        return SCHEME + "/".join(f"{kind}/{escape(name)}" for kind, name in self.pairs)

    @property
    def kind(self) -> str:
        return self.pairs[-1][0]

    @property
    def identifier(self) -> str:
        return self.pairs[-1][1]

    @property
    def tenant(self) -> str:
        return self.pairs[0][1]

    @property
    def organization(self) -> str | None:
        return self.value("org")

    @property
    def is_known(self) -> bool:
        return all(kind in KNOWN_RESOURCE_KINDS for kind, _ in self.pairs)

    def value(self, kind: str) -> str | None:
        return dict(self.pairs).get(kind)

    def locality(self) -> Locality:
        return Locality(*map(self.value, Locality.__struct_fields__))


class LogicalName(msgspec.Struct, frozen=True):
    """What something is called wherever it lies."""

    tenant: str
    project: str
    kind: str
    path: tuple[str, ...]
    version: str | None = None

    def __post_init__(self) -> None:
        if not self.path:
            raise NameInvalid("a logical name", "needs a path after its kind")
        for field in ("tenant", "project", "kind"):
            check_given(field, getattr(self, field))
        for part in self.path:
            check_given("a part of the path", part)
        if self.version is not None:
            check_given("version", self.version)

    @property
    def uri(self) -> str:
        tenant = _RESERVED.get(self.tenant) or escape(self.tenant)
        parts = (tenant, *map(escape, (self.project, self.kind, *self.path)))
        version = "" if self.version is None else f"@{escape(self.version)}"
        return SCHEME + "/".join(parts) + version


class LegacyResultName(msgspec.Struct, frozen=True):
    """An opaque reference of earlier logs. It stays readable; nothing new is named so."""

    execution_id: ExecutionId
    name: str
    identifier: str

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            check_given(field, getattr(self, field))

    @property
    def uri(self) -> str:
        execution, name = escape(self.execution_id), escape(self.name)
        return f"{SCHEME}execution/{execution}/result/{name}/{escape(self.identifier)}"


Name = ResourceLocator | LogicalName | LegacyResultName


def parse(uri: str) -> Name:
    """What a name says. Raises NameInvalid for what is none."""
    if not uri.startswith(SCHEME):
        raise NameInvalid(repr(uri), f"is no name; names begin with {SCHEME}")
    if "?" in uri or "#" in uri:
        raise NameInvalid(repr(uri), "has a query or a fragment; write ? as %3F and # as %23")
    parts = uri.removeprefix(SCHEME).split("/")
    if parts[0] == "tenant":
        return _resource(uri, parts)
    if parts[0] == "execution":
        return _legacy(uri, parts)
    return _logical(uri, parts)


def parse_resource(uri: str) -> ResourceLocator:
    name = parse(uri)
    if not isinstance(name, ResourceLocator):
        raise NameInvalid(repr(uri), "names no resource; use noetl://tenant/<tenant>/org/<org>/…")
    return name


def parse_logical(uri: str) -> LogicalName:
    name = parse(uri)
    if not isinstance(name, LogicalName):
        raise NameInvalid(repr(uri), "is no logical name; use noetl://<tenant>/<project>/<kind>/…")
    return name


def _resource(uri: str, parts: list[str]) -> ResourceLocator:
    if len(parts) % 2:
        raise NameInvalid(repr(uri), "ends in a kind without a name; give pairs of both")
    names = map(unescape, parts[1::2])
    return ResourceLocator(tuple(zip(parts[::2], names, strict=True)))


def _legacy(uri: str, parts: list[str]) -> LegacyResultName:
    match parts:
        case [_, execution, "result", name, identifier]:
            return LegacyResultName(
                ExecutionId(unescape(execution)), unescape(name), unescape(identifier)
            )
        case _:
            raise NameInvalid(
                repr(uri),
                "is not noetl://execution/<id>/result/<name>/<id>;"
                f" a tenant of that name is written {_RESERVED['execution']}",
            )


def _logical(uri: str, parts: list[str]) -> LogicalName:
    last, at, version = parts[-1].rpartition("@")
    match [*parts[:-1], last] if at else parts:
        case [tenant, project, kind, *path] if path:
            owner = (unescape(tenant), unescape(project), unescape(kind))
            return LogicalName(
                *owner, tuple(map(unescape, path)), unescape(version) if at else None
            )
        case _:
            raise NameInvalid(
                repr(uri), "is too short for noetl://<tenant>/<project>/<kind>/<path>"
            )


class WorkerLocatorParts(msgspec.Struct, frozen=True, kw_only=True):
    """Where a worker is, as far as it knows."""

    scope: Scope
    worker: str
    region: str | None = None
    zone: str | None = None
    cluster: str | None = None
    node: str | None = None


def worker_locator(parts: WorkerLocatorParts) -> ResourceLocator:
    places = ((level, getattr(parts, level)) for level in Locality.__struct_fields__)
    known = tuple((level, name) for level, name in places if name is not None)
    return ResourceLocator((*_owner(parts.scope), *known, ("worker", parts.worker)))


def resource_locator(scope: Scope, kind: str, identifier: str) -> ResourceLocator:
    if kind not in KNOWN_RESOURCE_KINDS:
        known = ", ".join(sorted(KNOWN_RESOURCE_KINDS))
        raise NameInvalid(repr(kind), f"is no kind of resource; use one of {known}")
    return ResourceLocator((*_owner(scope), (kind, identifier)))


def dataset_locator(scope: Scope, dataset: str) -> ResourceLocator:
    return resource_locator(scope, "dataset", dataset)


def stream_locator(scope: Scope, stream: str) -> ResourceLocator:
    return resource_locator(scope, "stream", stream)


def partition_locator(scope: Scope, stream: str, partition: str) -> ResourceLocator:
    return ResourceLocator((*_owner(scope), ("stream", stream), ("partition", partition)))


def _owner(scope: Scope) -> tuple[tuple[str, str], ...]:
    return (("tenant", scope.tenant_id), ("org", scope.organization_id))
