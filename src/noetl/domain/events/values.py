"""Values that several events carry: the result block, references in it, and failures."""

from typing import Annotated, Any, Literal

import msgspec

from noetl.kernel.instant import Instant

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What every store and every language can hold."""

InstantText = Annotated[Instant, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")]
"""An instant inside an event; the event's own time is checked by `instant.check`."""


class ResultReference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A durable copy of a result. `uri` is required, so a cache hint is never the only copy."""

    type: Literal["object_store", "kv", "db", "eventlog"]
    uri: str
    ref_id: str | None = None
    sha256: str | None = None
    media_type: str | None = None
    schema_digest: str | None = None
    byte_length: Int64 | None = None
    row_count: Int64 | None = None
    encoder: str | None = None  # who wrote the bytes; repair must write the same ones
    arrow_version: str | None = None


class ParentReference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    ref_id: str | None = None  # None for the first task of a pipeline


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a piece of work produced: small values in `context`, large ones by `reference`."""

    status: str
    reference: ResultReference | None = None  # None: nothing was stored outside the event
    parent_ref: ParentReference | None = None
    context: dict[str, Any] = {}


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why something failed, in words for people and a kind for rules."""

    kind: str
    message: str
    retryable: bool = False
    code: str | None = None
    detail: dict[str, Any] = {}
