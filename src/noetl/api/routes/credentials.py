"""Credentials: kept, listed without their data, and removed."""

from http import HTTPStatus
from typing import Any

import msgspec

from noetl.api.problems import Refused
from noetl.api.route import Asked, Nothing, Route, get, post
from noetl.domain.credential import CredentialEntry, NewCredential
from noetl.kernel.errors import CredentialMissing, RequestInvalid

NAME_CHARACTERS_MAX = 250


class NewAsked(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    type: str
    data: dict[str, Any]
    meta: dict[str, Any] | None = None
    tags: tuple[str, ...] | None = None
    description: str | None = None


class ListedBy(msgspec.Struct, frozen=True, kw_only=True):
    type: str | None = None
    q: str | None = None  # a part of the name


class Items(msgspec.Struct, frozen=True, kw_only=True):
    items: list[CredentialEntry]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    include_data: bool = False


class CredentialWithData(CredentialEntry, frozen=True, kw_only=True):
    data: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"CredentialWithData({self.name!r}, ***)"


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    status: str = "removed"
    name: str


async def put(asked: Asked[NewAsked, Nothing]) -> CredentialEntry:
    body = asked.body
    if not body.name.strip() or len(body.name) > NAME_CHARACTERS_MAX:
        raise RequestInvalid(f"name is empty or longer than {NAME_CHARACTERS_MAX} characters")
    return await asked.services.credentials.put(
        asked.scope,
        NewCredential(
            name=body.name,
            type=body.type,
            data=body.data,
            description=body.description,
            tags=body.tags or (),
            meta=body.meta or {},
        ),
    )


async def listed(asked: Asked[Nothing, ListedBy]) -> Items:
    wanted = (asked.query.q or "").lower()
    found = await asked.services.credentials.list(asked.scope, type=asked.query.type)
    return Items(items=[entry for entry in found if wanted in entry.name.lower()])


async def show(asked: Asked[Nothing, Shown]) -> CredentialWithData:
    """The data goes to workers alone, or to whoever may act as one."""
    name = asked.path["name"]
    entry = await _find(asked, name)
    data: dict[str, Any] | None = None
    if asked.query.include_data:
        if not asked.is_internal:
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "key_missing",
                "the data of a credential is given to holders of the internal key alone",
            )
        opened = await asked.services.credentials.get(asked.scope, name)
        if opened is None:
            raise CredentialMissing(name)
        data = opened.data
    fields: dict[str, Any] = msgspec.structs.asdict(entry)
    return CredentialWithData(**fields, data=data)


async def _find(asked: Asked[Nothing, Shown], name: str) -> CredentialEntry:
    for entry in await asked.services.credentials.list(asked.scope):
        if name in (entry.name, entry.id):
            return entry
    raise CredentialMissing(name)


async def remove(asked: Asked[Nothing, Nothing]) -> Removed:
    name = asked.path["name"]
    if not await asked.services.credentials.remove(asked.scope, name):
        raise CredentialMissing(name)
    return Removed(name=name)


ROUTES = (
    post("/api/credentials", "Keep a credential", put, body=NewAsked, gives=CredentialEntry),
    get("/api/credentials", "Credentials, never their data", listed, query=ListedBy, gives=Items),
    get(
        "/api/credentials/{name:path}",
        "A credential by name or id",
        show,
        query=Shown,
        gives=CredentialWithData,
    ),
    Route(
        method="DELETE",
        path="/api/credentials/{name:path}",
        summary="Remove a credential",
        endpoint=remove,
        body=Nothing,
        query=Nothing,
        gives=Removed,
    ),
)
