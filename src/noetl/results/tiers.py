"""How a result is kept: in its event, as a table, or as JSON. Decided and encoded in one place.

The producer, the materializer and repair all call `encode`, so equal contents are equal bytes.
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from noetl.domain.events.values import ResultReference
from noetl.kernel import canonical_json
from noetl.results.nested import STORED
from noetl.results.tabular import TablePath, bytes_min, find_table, rows_at, without_table
from noetl.templates.recorded import INLINE_BYTES_MAX

FEATHER_MEDIA_TYPE = "application/vnd.apache.arrow.file"
JSON_MEDIA_TYPE = "application/json"
JSON_ENCODER = f"noetl-json/{canonical_json.FORM}"

SHELL_BYTES_MAX = 16 * 1024 * 1024
"""Every reader of a table decodes what stands around it."""

__all__ = [
    "FEATHER_MEDIA_TYPE",
    "INLINE_BYTES_MAX",
    "JSON_ENCODER",
    "JSON_MEDIA_TYPE",
    "SHELL_BYTES_MAX",
    "Encoded",
    "Feather",
    "Inline",
    "Json",
    "decide_tier",
    "encode",
    "media_type_of",
]


class Inline(NamedTuple):
    """In the event, and nowhere else."""

    data: bytes  # canonical JSON


class Feather(NamedTuple):
    table: TablePath


class Json(NamedTuple):
    data: bytes  # canonical JSON


class Encoded(NamedTuple):
    """A content as bytes, and what its reference says of them."""

    tier: Literal["inline", "feather", "json"]
    media_type: str
    data: bytes
    encoder: str
    row_count: int | None = None  # these are known of tables only
    schema_digest: str | None = None
    arrow_version: str | None = None


def media_type_of(reference: ResultReference) -> str:
    """References to JSON need not say so."""
    return reference.media_type or JSON_MEDIA_TYPE


def decide_tier(
    content: Mapping[str, Any], inline_bytes_max: int = INLINE_BYTES_MAX
) -> Inline | Feather | Json:
    """By the bytes of canonical JSON: the budget first, then whether it is mostly a table.

    What names stored tables is JSON: who looks for the names reads no tables, and lists of
    records that are left in it are none that anybody asks for as a table.

    Raises NotFinite, ValueNotPlain.
    """
    if STORED in content:
        return Json(canonical_json.encode(content))
    table = find_table(content)
    if table is not None:
        # A large table is known by its size alone; writing it as JSON to be sure takes longer.
        at_least = bytes_min(rows_at(content, table))
        if at_least > inline_bytes_max and _is_most(table, content, at_least):
            return Feather(table)
    data = canonical_json.encode(content)
    if len(data) <= inline_bytes_max:
        return Inline(data)
    return Feather(table) if table and _is_most(table, content, len(data)) else Json(data)


def encode(content: Mapping[str, Any], inline_bytes_max: int = INLINE_BYTES_MAX) -> Encoded:
    """The same bytes for the same content, whoever asks. Raises NotFinite, ValueNotPlain."""
    match decide_tier(content, inline_bytes_max):
        case Inline(data):
            return Encoded("inline", JSON_MEDIA_TYPE, data, JSON_ENCODER)
        case Json(data):
            return Encoded("json", JSON_MEDIA_TYPE, data, JSON_ENCODER)
        case Feather(table):
            return _as_feather(content, table)


def _is_most(table: TablePath, content: Mapping[str, Any], content_bytes: int) -> bool:
    """A list of two records beside a long text does not make a table of the whole."""
    shell_bytes = len(canonical_json.encode(without_table(content, table)))
    return shell_bytes <= SHELL_BYTES_MAX and 2 * shell_bytes <= content_bytes


def _as_feather(content: Mapping[str, Any], table: TablePath) -> Encoded:
    from noetl.results import feather  # noqa: PLC0415 - Arrow is loaded with the first table

    encoded = feather.encode_table(content, table)
    return Encoded(
        "feather",
        FEATHER_MEDIA_TYPE,
        encoded.data,
        feather.ENCODER,
        row_count=encoded.row_count,
        schema_digest=encoded.schema_digest,
        arrow_version=feather.ARROW_VERSION,
    )
