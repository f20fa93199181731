"""Where results lie, as drivers and executors are told: an address without keys, and a placement.

Keys of a cloud come from the surroundings of whoever opens it: its variables, its role.
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

_OPTIONS_KEPT = frozenset(
    ("endpoint", "region", "allow_http", "virtual_hosted_style_request", "skip_signature")
)

Answer = TypeVar("Answer")


class ObjectPlace(msgspec.Struct, frozen=True, kw_only=True):
    url: str  # `file:///folder`, or a bucket
    env: str = "dev"
    region: str = "local"
    cell: str = "local"
    shard_count: int = SHARD_COUNT

    @property
    def placement(self) -> CellPlacement:
        return CellPlacement(self.env, self.region, self.cell, self.shard_count)


def place_at(url: str, placement: CellPlacement) -> ObjectPlace:
    """Plans and pages show it, so options that are not known to be harmless are left out."""
    address, _, options = url.partition("?")
    if urlsplit(address).password:
        raise RequestInvalid("the address of the results has a password; give it by a variable")
    kept = [(name, value) for name, value in parse_qsl(options) if name in _OPTIONS_KEPT]
    return ObjectPlace(
        url=f"{address}?{urlencode(kept)}" if kept else address,
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
        objects = cast(ObjectStore, getattr(importlib.import_module(module), function)(place.url))
        try:
            return await use(objects)
        finally:
            await objects.close()

    return run_apart(opened())


def run_apart(work: Coroutine[Any, Any, Answer]) -> Answer:
    """In a thread of its own: who calls may be inside of a loop, as in a notebook."""
    with ThreadPoolExecutor(1) as apart:
        return apart.submit(asyncio.run, work).result()
