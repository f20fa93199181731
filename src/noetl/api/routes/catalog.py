"""Playbooks: registered, listed, read, and the form of their workload."""

import base64
import binascii
from typing import Any, Literal

import msgspec

from noetl.api.route import Asked, Nothing, get, post
from noetl.domain.catalog import CatalogEntry
from noetl.kernel.errors import RequestInvalid
from noetl.kernel.instant import Instant
from noetl.ports.catalog import LIST_ENTRIES_MAX

LIST_PAGES_MAX = 20
Version = int | str | None


class Register(msgspec.Struct, frozen=True, kw_only=True):
    """`content` is the text of a playbook, plain or in base64."""

    content: str
    resource_type: str = "Playbook"


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "success"
    message: str
    path: str
    version: int
    catalog_id: str
    kind: str
    is_new: bool
    warnings: list[str] = []


class PlaybooksAsked(msgspec.Struct, frozen=True, kw_only=True):
    resource_type: str | None = None
    path: str | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    catalog_id: str
    path: str
    version: int
    kind: str
    name: str
    description: str | None = None
    digest: str
    meta: dict[str, Any] = {}
    created_at: Instant


class Entries(msgspec.Struct, frozen=True, kw_only=True):
    entries: list[Entry]


class ResourceAsked(msgspec.Struct, frozen=True, kw_only=True):
    """By id, or by path: that version, or `latest`."""

    catalog_id: str | int | None = None
    path: str | None = None
    version: Version = None


class Resource(Entry, frozen=True, kw_only=True):
    content: str
    payload: dict[str, Any]


class UiField(msgspec.Struct, frozen=True, kw_only=True):
    type: Literal["string", "integer", "number", "boolean", "array", "object", "null"]
    title: str
    default: Any = None


class UiSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A JSON schema of what an execution may bring; defaults are the playbook's own."""

    title: str
    description: str | None = None
    path: str
    version: int
    type: str = "object"
    properties: dict[str, UiField] = {}


class UiSchemaAsked(msgspec.Struct, frozen=True, kw_only=True):
    version: Version = None


async def register(asked: Asked[Register, Nothing]) -> Registered:
    done = await asked.services.playbooks.register(asked.scope, _text(asked.body.content))
    entry = done.entry
    said = "registered" if done.is_new else "had this text before"
    return Registered(
        message=f"{entry.path} version {entry.version} {said}",
        path=entry.path,
        version=entry.version,
        catalog_id=entry.catalog_id,
        kind=entry.kind,
        is_new=done.is_new,
        warnings=[f"{each.line}:{each.column}: {each.message}" for each in done.warnings],
    )


def _text(content: str) -> str | bytes:
    """A playbook is a map, so its text has a colon; base64 has none."""
    if ":" in content:
        return content
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError):
        return content


async def listed(asked: Asked[PlaybooksAsked, Nothing]) -> Entries:
    kind = (asked.body.resource_type or "").lower()
    found: list[Entry] = []
    after = ("", 0)
    for _ in range(LIST_PAGES_MAX):
        page = await asked.services.catalog.list(asked.scope, path=asked.body.path, after=after)
        found += [_entry(each) for each in page if kind in ("", each.kind.lower())]
        if len(page) < LIST_ENTRIES_MAX:
            break
        after = (page[-1].path, page[-1].version)
    return Entries(entries=found)


async def resource(asked: Asked[ResourceAsked, Nothing]) -> Resource:
    body = asked.body
    catalog_id = None if body.catalog_id is None else str(body.catalog_id)
    playbooks = asked.services.playbooks
    entry = await playbooks.find(asked.scope, body.path, version_of(body.version), catalog_id)
    playbook = await playbooks.load(asked.scope, entry.digest)
    shown: dict[str, Any] = msgspec.to_builtins(_entry(entry))
    return Resource(
        **shown,
        content=await playbooks.text(asked.scope, entry),
        payload=msgspec.to_builtins(playbook),
    )


async def ui_schema(asked: Asked[Nothing, UiSchemaAsked]) -> UiSchema:
    playbooks = asked.services.playbooks
    version = version_of(asked.query.version)
    entry = await playbooks.find(asked.scope, asked.path["path"], version)
    playbook = await playbooks.load(asked.scope, entry.digest)
    return UiSchema(
        title=entry.name,
        description=entry.description,
        path=entry.path,
        version=entry.version,
        properties={
            name: UiField(type=_type_of(value), title=name.replace("_", " "), default=value)
            for name, value in playbook.workload.items()
        },
    )


def _entry(entry: CatalogEntry) -> Entry:
    return Entry(
        catalog_id=entry.catalog_id,
        path=entry.path,
        version=entry.version,
        kind=entry.kind,
        name=entry.name,
        description=entry.description,
        digest=entry.digest,
        meta=entry.meta,
        created_at=entry.registered_at,
    )


def version_of(given: Version) -> int | None:
    """A number, a number as text, or `latest`: that is None."""
    if given is None or given == "latest":
        return None
    try:
        version = int(given)
    except ValueError:
        raise RequestInvalid(f"version is {given!r}; give a number, or latest") from None
    if not 1 <= version < 2**31:
        raise RequestInvalid(f"version is {version}; versions are 1, 2, 3 …")
    return version


def _type_of(
    value: Any,
) -> Literal["string", "integer", "number", "boolean", "array", "object", "null"]:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "string"


ROUTES = (
    post(
        "/api/catalog/register",
        "Register a playbook",
        register,
        body=Register,
        gives=Registered,
    ),
    post(
        "/api/catalog/list", "Playbooks, all versions", listed, body=PlaybooksAsked, gives=Entries
    ),
    post(
        "/api/catalog/resource",
        "A playbook with its text",
        resource,
        body=ResourceAsked,
        gives=Resource,
    ),
    get(
        "/api/catalog/{path:path}/ui_schema",
        "The form of a playbook's workload",
        ui_schema,
        query=UiSchemaAsked,
        gives=UiSchema,
    ),
)
