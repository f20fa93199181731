"""The cells that hold results: the only thing about them that is looked up and not computed."""

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from noetl.domain.naming.placement import CellPlacement, StoreAddress, check_place
from noetl.kernel.errors import NameInvalid

CELLS_MAX = 1_000
REPLICAS_MAX = 16

Provider = Literal["file", "s3", "gs", "az", "memory"]


class Replica(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place to which somebody copies a cell's objects, under the same keys, a little later."""

    provider: Provider
    url: str
    region: str
    endpoint: str | None = None

    def __post_init__(self) -> None:
        check_place("region", self.region)
        subject = f"the replica {self.url!r}"
        _check_url(subject, self.provider, self.url)
        if self.endpoint is not None:
            _check_endpoint(subject, self.endpoint)


class Cell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One place for objects. Who may read it is the business of its readers' own credentials."""

    name: str
    provider: Provider
    url: str  # `file:` in the home, `file:///folder`, or `s3://`, `gs://`, `az://` and a bucket
    region: str
    endpoint: str | None = None  # None: the provider's own
    replicas: tuple[Replica, ...] = ()

    @property
    def store(self) -> StoreAddress | None:
        """None: in a home, wherever that is."""
        return None if self.url == "file:" else StoreAddress(self.url, self.endpoint)

    def __post_init__(self) -> None:
        check_place("cell", self.name)
        check_place("region", self.region)
        subject = f"cell {self.name!r}"
        _check_url(f"the url of {subject}", self.provider, self.url)
        if self.endpoint is not None:
            _check_endpoint(f"the endpoint of {subject}", self.endpoint)
        places = [(self.url, self.endpoint), *((one.url, one.endpoint) for one in self.replicas)]
        if len(self.replicas) > REPLICAS_MAX or len(set(places)) < len(places):
            raise NameInvalid(subject, f"has a place twice, or more than {REPLICAS_MAX} replicas")


class CellRegistry(msgspec.Struct, frozen=True):
    """`{"cells": [{"name", "provider", "url", "region", "endpoint", "replicas"}]}` in JSON."""

    cells: tuple[Cell, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.cells) <= CELLS_MAX:
            raise NameInvalid(f"a registry of {len(self.cells)} cells", f"has 1 to {CELLS_MAX}")
        names = [cell.name for cell in self.cells]
        for name in names:
            if names.count(name) > 1:
                raise NameInvalid(f"cell {name!r}", "is there twice; give each cell its own name")

    @property
    def by_name(self) -> Mapping[str, Cell]:
        return {cell.name: cell for cell in self.cells}

    def find(self, name: str) -> Cell:
        """The cell of that name. Where there is only one, every name leads to it."""
        if len(self.cells) == 1:
            return self.cells[0]
        found = self.by_name.get(name)
        if found is None:
            known = ", ".join(self.by_name)
            raise NameInvalid(f"cell {name!r}", f"is not in NOETL_RESULT_CELLS, which has {known}")
        return found


class CellDirectory(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of its cells; a reader of the registry can read it too."""

    placement: CellPlacement
    cells: tuple[Cell, ...]


def registry_from_json(data: bytes | str) -> CellRegistry:
    try:
        return msgspec.json.decode(data, type=CellRegistry)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NameInvalid("the registry of cells", f"cannot be read: {error}") from error


def _check_url(subject: str, provider: Provider, url: str) -> None:
    given = urlsplit(url)
    if given.scheme != provider:
        raise NameInvalid(subject, f"is not one of its provider; it begins with {provider}:")
    # A registry is given to every worker: options and keys would go with it.
    if given.query or given.fragment or "@" in given.netloc:
        raise NameInvalid(subject, "has keys or options in it; give only the bucket and a path")
    if provider == "file":
        if given.netloc or (given.path and not given.path.startswith("/")):
            raise NameInvalid(subject, "is no folder; use file: or file:///folder")
    elif not given.netloc and provider != "memory":
        raise NameInvalid(subject, f"names no bucket; use {provider}://bucket")


def _check_endpoint(subject: str, endpoint: str) -> None:
    given = urlsplit(endpoint)
    is_plain = not given.query and not given.fragment and "@" not in given.netloc
    if given.scheme not in ("http", "https") or not given.netloc or not is_plain:
        raise NameInvalid(subject, "is no address; use https://host or http://host:port")
