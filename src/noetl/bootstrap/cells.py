"""The registry of cells that the settings give: JSON, a file of it, or the payloads' own store."""

from pathlib import Path
from urllib.parse import parse_qs

import msgspec

from noetl.bootstrap.objects import SERVER
from noetl.bootstrap.settings import Settings
from noetl.domain.naming.cells import Cell, CellRegistry, registry_from_json
from noetl.domain.naming.placement import StoreAddress
from noetl.kernel.errors import NameInvalid, SettingInvalid


def cell_registry(settings: Settings) -> CellRegistry:
    """Every cell there is. Our own must be among them, unless one cell stands for all."""
    return known_cells(settings) or CellRegistry((_only_cell(settings),))


def known_cells(settings: Settings) -> CellRegistry | None:
    """None when the settings name no cells: then all there is lies with the payloads."""
    given = cells_text(settings)
    if given is None:
        return None
    try:
        registry = registry_from_json(given)
        registry.find(settings.result_cell)
    except NameInvalid as error:
        raise SettingInvalid(f"NOETL_RESULT_CELLS: {error}") from error
    return registry


def cells_text(settings: Settings) -> str | None:
    """The registry itself, wherever it was read: not every machine has our files."""
    given = settings.result_cells
    return given if given is None or given.lstrip().startswith("{") else _read(given)


def own_store(settings: Settings) -> StoreAddress | None:
    """Where we write; None: wherever the server does."""
    return None if settings.payload_url == SERVER else _only_cell(settings).store


def check_own_cell(settings: Settings, registry: CellRegistry) -> None:
    """Refuse a registry that sends readers elsewhere than we write."""
    own = own_store(settings)
    if own is None:
        return
    cell = registry.find(settings.result_cell)
    is_ours = settings.payload_url == "file:" if cell.store is None else cell.store.may_be(own)
    if not is_ours:
        raise SettingInvalid(
            f"NOETL_RESULT_CELLS has the cell {cell.name} in {cell.url}, and results are written to"
            f" {own}; give NOETL_PAYLOAD_URL and the registry the same store"
        )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SettingInvalid(
            f"NOETL_RESULT_CELLS is neither JSON nor a file that can be read: {error}"
        ) from error


def _only_cell(settings: Settings) -> Cell:
    """The payloads' store without its options: keys among them are nobody else's business. A
    folder is told whole: whoever gets a plan does not know our home."""
    url, _, options = settings.payload_url.partition("?")
    if url == "file:":
        url = settings.payload_path.resolve().as_uri()
    described = {
        "name": settings.result_cell,
        "provider": url.partition(":")[0],
        "url": url,
        "region": settings.result_cell_region,
        "endpoint": parse_qs(options).get("endpoint", [None])[-1],
    }
    try:
        return msgspec.convert(described, Cell)
    except (msgspec.ValidationError, NameInvalid) as error:
        raise SettingInvalid(f"NOETL_PAYLOAD_URL cannot hold results: {error}") from error
