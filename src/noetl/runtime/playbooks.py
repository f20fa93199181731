"""Register playbooks, find them again, and read them as they were registered."""

import asyncio
from collections import OrderedDict
from typing import Any

import msgspec

from noetl.domain.catalog import CatalogEntry, NewCatalogEntry
from noetl.domain.payload import StoredPayload, reference_to
from noetl.domain.playbook.model import Metadata, Playbook
from noetl.domain.playbook.wording import nearest
from noetl.dsl.check import Checked, check
from noetl.dsl.problems import IsOtherKind, Problem
from noetl.kernel.errors import EntryNotFound, InvariantBroken, PlaybookInvalid, RequestInvalid
from noetl.kernel.scope import Scope
from noetl.ports.catalog import Catalog
from noetl.ports.payload_store import PayloadStore

KIND = "Playbook"
MEDIA_TYPE = "application/yaml"
PARSED_MAX = 256
PATH_CHARACTERS_MAX = 250  # fits an index, whatever the alphabet
HINT_PAGES_MAX = 3
"""Of the catalogue, read to say which path was probably meant."""

_AFTER_ALL_VERSIONS = 2**62


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """`is_new` is false when the newest version had this text before we came."""

    entry: CatalogEntry
    is_new: bool
    warnings: tuple[Problem, ...] = ()


class Playbooks:
    def __init__(
        self,
        catalog: Catalog,
        payloads: PayloadStore,
        is_other_kind: IsOtherKind | None = None,
    ) -> None:
        self._is_other_kind = is_other_kind
        self._catalog = catalog
        self._payloads = payloads
        self._parsed: OrderedDict[tuple[Scope, str], Playbook] = OrderedDict()

    async def register(self, scope: Scope, text: str | bytes) -> Registered:
        """Text first, entry second: an entry never names a text that is not there."""
        checked = await self._checked(text)
        playbook = _sound(checked)
        new = _new_entry(playbook.metadata, checked.digest)
        data = text if isinstance(text, bytes) else text.encode()
        stored = await self._payloads.put(scope, data, MEDIA_TYPE)
        if stored.sha256 != checked.digest:
            raise InvariantBroken(
                f"the playbook {new.path} was checked as {checked.digest} and stored as"
                f" {stored.sha256}"
            )
        before = await self._catalog.find(scope, new.path)
        entry = await self._catalog.register(scope, new)
        self._remember(scope, checked.digest, playbook)
        is_new = before is None or before.version < entry.version
        return Registered(entry=entry, is_new=is_new, warnings=checked.problems)

    async def text(self, scope: Scope, entry: CatalogEntry) -> str:
        """Exactly as it was registered."""
        return (await self._bytes(scope, entry.digest)).decode()

    async def load(self, scope: Scope, digest: str) -> Playbook:
        """The playbook that executions of this digest follow, whatever was registered since."""
        known = self._parsed.get((scope, digest))
        if known is not None:
            self._parsed.move_to_end((scope, digest))
            return known
        playbook = _sound(await self._checked(await self._bytes(scope, digest)))
        self._remember(scope, digest, playbook)
        return playbook

    async def find(
        self,
        scope: Scope,
        path: str | None = None,
        version: int | None = None,
        catalog_id: str | None = None,
    ) -> CatalogEntry:
        """By id, or by path: that version, or the newest."""
        if catalog_id is not None:
            return await self._find_by_id(scope, catalog_id, path)
        if path is None:
            raise RequestInvalid("no playbook is named; give its path or its catalog_id")
        entry = await self._catalog.find(scope, path, version)
        if entry is None:
            raise EntryNotFound(await self._what_is_missing(scope, path, version))
        return entry

    async def _find_by_id(self, scope: Scope, catalog_id: str, path: str | None) -> CatalogEntry:
        entry = await self._catalog.find_by_id(scope, catalog_id)
        if entry is None:
            raise EntryNotFound(f"playbook with the id {catalog_id}")
        if path not in (None, entry.path):
            raise RequestInvalid(
                f"the id {catalog_id} is that of {entry.path!r}, not of {path!r}; give one of them"
            )
        return entry

    async def _what_is_missing(self, scope: Scope, path: str, version: int | None) -> str:
        newest = None if version is None else await self._catalog.find(scope, path)
        if newest is not None:
            return f"version {version} of playbook {path!r} (the newest is {newest.version})"
        meant = nearest(path, await self._paths(scope))
        hint = "" if meant is None else f" (did you mean {meant!r}?)"
        return f"playbook {path!r}{hint}"

    async def _paths(self, scope: Scope) -> list[str]:
        paths: dict[str, None] = {}
        after = ("", 0)
        for _ in range(HINT_PAGES_MAX):
            page = await self._catalog.list(scope, after=after)
            if not page:
                break
            paths.update(dict.fromkeys(entry.path for entry in page))
            after = (page[-1].path, _AFTER_ALL_VERSIONS)
        return list(paths)

    async def _checked(self, text: str | bytes) -> Checked:
        """In a thread: a text of megabytes takes seconds, in which leases would run out."""
        return await asyncio.to_thread(check, text, self._is_other_kind)

    async def _bytes(self, scope: Scope, digest: str) -> bytes:
        # Its length is not known here; a store finds and proves a payload by the digest alone.
        reference = reference_to(scope, StoredPayload(digest, 0), MEDIA_TYPE)
        return b"".join([chunk async for chunk in self._payloads.get(reference)])

    def _remember(self, scope: Scope, digest: str, playbook: Playbook) -> None:
        self._parsed[scope, digest] = playbook
        self._parsed.move_to_end((scope, digest))
        if len(self._parsed) > PARSED_MAX:
            self._parsed.popitem(last=False)


def _sound(checked: Checked) -> Playbook:
    if checked.playbook is None:
        raise PlaybookInvalid(tuple(_line(problem) for problem in checked.problems))
    return checked.playbook


def _line(problem: Problem) -> str:
    place = f"{problem.line}:{problem.column}"
    return f"{place}: {problem.severity}: {problem.message}; {problem.fix}"


def _new_entry(metadata: Metadata, digest: str) -> NewCatalogEntry:
    path = metadata.path or metadata.name
    if len(path) > PATH_CHARACTERS_MAX or not path.isprintable():
        key = "path" if metadata.path else "name"
        raise PlaybookInvalid(
            (
                f"error: metadata.{key} is longer than {PATH_CHARACTERS_MAX} characters or holds"
                " one that cannot be printed; it is the key in the catalogue: write a plain name",
            )
        )
    return NewCatalogEntry(
        path=path,
        kind=KIND,
        digest=digest,
        name=metadata.name,
        description=metadata.description,
        meta=_meta(metadata),
    )


def _meta(metadata: Metadata) -> dict[str, Any]:
    """What the author wrote to find the playbook by; absent keys stay absent."""
    own = {
        "version": metadata.version,
        "tags": list(metadata.tags),
        "labels": metadata.labels,
    }
    return metadata.extra | {name: value for name, value in own.items() if value}
