"""Where results lie, as drivers and executors are told: an address, its keys, and a placement.

Keys travel apart from the address, in closures and pickled classes: no plan, page or message shows
them. Where there are none, the surroundings of whoever opens the store count: its variables, role.
"""

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from noetl.domain.naming.placement import SHARD_COUNT, CellPlacement
from noetl.kernel.errors import RequestInvalid
from noetl.ports.object_store import ObjectStore

OPENER = "noetl.bootstrap.objects:open_object_url"
"""By its name, like the functions of slots: what opens stores is picked above this room."""

_HARMLESS = frozenset(
    ("endpoint", "region", "allow_http", "virtual_hosted_style_request", "skip_signature")
)

Answer = TypeVar("Answer")


class ObjectPlace(msgspec.Struct, frozen=True, kw_only=True):
    url: str  # `file:///folder`, or a bucket
    keys: str = ""  # further options of the bucket, as in its address
    env: str = "dev"
    region: str = "local"
    cell: str = "local"
    shard_count: int = SHARD_COUNT

    def __repr__(self) -> str:
        return f"ObjectPlace({self.url!r}, {self.placement})"

    @property
    def address(self) -> str:
        """For whoever opens the store, and nobody else."""
        if not self.keys:
            return self.url
        return f"{self.url}{'&' if '?' in self.url else '?'}{self.keys}"

    @property
    def placement(self) -> CellPlacement:
        return CellPlacement(self.env, self.region, self.cell, self.shard_count)


def place_at(url: str, placement: CellPlacement) -> ObjectPlace:
    """Options that are not known to be harmless are keys."""
    address, _, options = url.partition("?")
    if urlsplit(address).password:
        raise RequestInvalid("the address of the results has a password; give it by a variable")
    given = parse_qsl(options)
    shown = [pair for pair in given if pair[0] in _HARMLESS]
    return ObjectPlace(
        url=f"{address}?{urlencode(shown)}" if shown else address,
        keys=urlencode([pair for pair in given if pair[0] not in _HARMLESS]),
        env=placement.env,
        region=placement.region,
        cell=placement.cell,
        shard_count=placement.shard_count,
    )


def url_of_home(home: str | Path) -> str:
    """Where a home keeps its objects, unless it was told otherwise."""
    return f"file://{quote(str(Path(home).resolve() / 'payloads'))}"


def with_objects(place: ObjectPlace, use: Callable[[ObjectStore], Awaitable[Answer]]) -> Answer:
    """Open the store, do something with it, close it. Blocks."""

    async def opened() -> Answer:
        module, _, function = OPENER.partition(":")
        objects = cast(
            ObjectStore, getattr(importlib.import_module(module), function)(place.address)
        )
        try:
            return await use(objects)
        finally:
            await objects.close()

    return run_apart(opened())


def run_apart(work: Coroutine[Any, Any, Answer]) -> Answer:
    """In a thread of its own: who calls may be inside of a loop, as in a notebook."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, work).result()
