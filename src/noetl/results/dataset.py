"""What a stage gave, as one dataset: a manifest that lists the outputs of its frames in order.

A frame's output is a list of rows `{index, status, value, error, writes}`. A small one stands in
the manifest itself, as it stood in its event; a larger one is an object with a name of its own.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.work import RowOutcome
from noetl.kernel import canonical_json

ROWS = "rows"
"""The key under which the object of a frame keeps its rows."""

ROW_FIELDS = ("index", "status", "value", "error", "writes")


class DatasetPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Rows `first` to `first + rows`; `outcomes` when there is no object."""

    first: int
    rows: int
    reference: ResultReference | None = None
    outcomes: list[dict[str, Any]] | None = None


class DatasetManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`loop` is what the step's result says beside its rows: how many there were, and how."""

    loop: dict[str, Any]
    parts: list[DatasetPart]

    @property
    def row_count(self) -> int:
        return sum(part.rows for part in self.parts)


def manifest_bytes(manifest: DatasetManifest) -> bytes:
    """The same for whoever folded the frames: in one memory, or again from the log."""
    return canonical_json.encode_recorded(manifest)


def is_manifest(content: Any) -> bool:
    """No result of a step has these two keys: results stand below keys of their own."""
    return isinstance(content, dict) and content.keys() == {"loop", "parts"}


def is_table(manifest: DatasetManifest) -> bool:
    """Whether its parts are rows of one table, as a tool wrote them, and not outputs of frames:
    there is no loop that anything could be said of."""
    return not manifest.loop


def frame_content(outcomes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Every row has every field, so that the rows are a table."""
    return {ROWS: [{name: row.get(name) for name in ROW_FIELDS} for row in outcomes]}


def content_of_outcomes(outcomes: Iterable[RowOutcome]) -> dict[str, Any]:
    """The same for outcomes at hand: their values are plain, and are not copied to become so."""
    return {
        ROWS: [
            {
                "index": row.index,
                "status": row.status,
                "value": row.value,
                "error": None if row.error is None else msgspec.to_builtins(row.error),
                "writes": row.writes or None,
            }
            for row in outcomes
        ]
    }


def outcomes_of(rows: Iterable[Mapping[str, Any]]) -> list[RowOutcome]:
    """Rows as they were before every one of them got every field."""
    said = [{name: part for name, part in row.items() if part is not None} for row in rows]
    return msgspec.convert(said, list[RowOutcome])


def rows_of(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = content[ROWS]
    return rows
