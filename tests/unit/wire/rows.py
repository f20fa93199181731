"""Rows of a log as a store would hold them, and rows that something happened to."""

from typing import Any

import msgspec

from noetl.domain.log import SealedEvent, StoredEvent
from noetl.kernel import canonical_json


def row_of(sealed: SealedEvent) -> StoredEvent:
    return StoredEvent(
        sealed.envelope.execution_id,
        sealed.envelope.stream_version,
        position=sealed.envelope.stream_version,
        ingest_time=sealed.envelope.event_time,
        canonical=sealed.canonical,
        checksum=sealed.checksum,
    )


def with_bytes(row: StoredEvent, canonical: bytes) -> StoredEvent:
    """The row with other bytes and the checksum that fits them."""
    checksum = canonical_json.sha256_hex(canonical)
    return msgspec.structs.replace(row, canonical=canonical, checksum=checksum)


def rewritten(row: StoredEvent, **fields: Any) -> StoredEvent:
    """The row as another build would have written it: other fields, right checksum."""
    plain = msgspec.json.decode(row.canonical)
    return with_bytes(row, canonical_json.encode(plain | fields))
