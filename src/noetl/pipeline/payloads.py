"""References as events carry them, and the payloads and results that they stand for."""

from collections.abc import Iterable, Mapping
from typing import Any

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.payload import PayloadReference

MEDIA_TYPE = "application/json"


def references_of(results: Mapping[Any, Result]) -> dict[str, ResultReference]:
    """What is known of stored results, by their uri: the digest proves the bytes."""
    return _by_uri(result.reference for result in results.values())


def as_reference(stored: PayloadReference) -> ResultReference:
    """How an event names a payload."""
    return ResultReference(
        type="object_store",
        uri=stored.uri,
        sha256=stored.sha256,
        media_type=stored.media_type,
        byte_length=stored.byte_length,
    )


def _by_uri(references: Iterable[ResultReference | None]) -> dict[str, ResultReference]:
    return {each.uri: each for each in references if each is not None}
