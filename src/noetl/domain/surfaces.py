"""Checksums that prove a state: one per surface, and the bundle of all six.

A surface's checksum covers the chain of its finished rows and its open rows. Whoever has rows
from a live read model can compute the same checksum without folding anything.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from noetl.domain.execution.accumulator import extend
from noetl.domain.execution.rows import SURFACES, Chain, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.kernel import canonical_json

Row = dict[str, Any]

ID_FIELDS: dict[Surface, tuple[str, ...]] = {
    "execution": ("execution_id",),
    "stages": ("stage_id",),
    "frames": ("frame_id",),
    "commands": ("command_id",),
    "business_objects": ("object", "id"),
    "loops": ("loop_id",),
}


def checksum_bundle(state: ExecutionState) -> dict[str, str]:
    """The six checksums of a folded state."""
    return {
        surface: _surface_checksum(state.retired[surface], open_rows(state, surface))
        for surface in SURFACES
    }


def live_checksum_bundle(rows: Mapping[Surface, Iterable[Row]]) -> dict[str, str]:
    """The same six checksums from plain rows, finished and open mixed in any order."""
    return {surface: _live_checksum(surface, list(rows.get(surface, ()))) for surface in SURFACES}


def open_rows(state: ExecutionState, surface: Surface) -> list[Row]:
    """The rows of a surface that are not terminal, in the order of their ids."""
    if surface == "execution":
        return [plain(state.execution)] if state.execution.event_count else []
    rows: dict[str, msgspec.Struct] = getattr(state, surface)
    return sorted((plain(row) for row in rows.values()), key=lambda row: _id(surface, row))


class RowCollector:
    """A sink that keeps every finished row; with the open ones that is the whole surface."""

    def __init__(self) -> None:
        self._finished: dict[Surface, list[Row]] = {surface: [] for surface in SURFACES}

    def __call__(self, surface: Surface, row: msgspec.Struct) -> None:
        self._finished[surface].append(plain(row))

    def rows(self, state: ExecutionState) -> dict[Surface, list[Row]]:
        """Finished rows in the order they ended, then the open ones in the order of their ids."""
        return {
            surface: [*self._finished[surface], *open_rows(state, surface)] for surface in SURFACES
        }


def plain(row: msgspec.Struct) -> Row:
    """A row as JSON sees it."""
    built: Row = msgspec.to_builtins(row)
    return built


def state_checksum(state: ExecutionState) -> str:
    """One checksum for the whole state, from the bundle and the place in the stream."""
    return canonical_json.checksum(
        {
            "event_count": state.execution.event_count,
            "last_event_id": state.execution.last_event_id,
            "projection_checksums": checksum_bundle(state),
            "stream_version": state.stream_version,
        }
    )


class Parity(msgspec.Struct, frozen=True):
    """Where two bundles differ; equal bundles mean equal states."""

    matches: bool
    differing: tuple[Surface, ...]
    missing: tuple[Surface, ...]
    unknown: tuple[str, ...]


def parity(replayed: Mapping[str, str], live: Mapping[str, str]) -> Parity:
    missing = tuple(s for s in SURFACES if s not in replayed or s not in live)
    unknown = tuple(sorted((set(replayed) | set(live)) - set(SURFACES)))
    differing = tuple(s for s in SURFACES if s not in missing and replayed[s] != live[s])
    return Parity(not (missing or unknown or differing), differing, missing, unknown)


def _live_checksum(surface: Surface, rows: list[Row]) -> str:
    chain = Chain()
    finished = [row for row in rows if row.get("terminal_version") is not None]
    for row in sorted(finished, key=lambda row: int(row["terminal_version"])):
        extend(chain, canonical_json.encode_recorded(row))
    still_open = [row for row in rows if row.get("terminal_version") is None]
    return _surface_checksum(chain, sorted(still_open, key=lambda row: _id(surface, row)))


def _surface_checksum(chain: Chain, rows: list[Row]) -> str:
    return canonical_json.sha256_hex(
        canonical_json.encode_recorded(
            {"finished": chain.count, "chain": chain.digest, "open": rows}
        )
    )


def _id(surface: Surface, row: Row) -> tuple[str, ...]:
    return tuple(str(row[field]) for field in ID_FIELDS[surface])
