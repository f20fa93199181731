"""Which stored objects a stored object names: a pipeline's tables, the parts of a dataset.

Events name the outer one only. Whoever asks what is alive, whole or there asks here for the rest.
"""

from typing import NamedTuple

import msgspec

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import parse_results
from noetl.domain.payload import is_payload_uri
from noetl.kernel.errors import NameInvalid, ObjectMissing, PayloadMissing
from noetl.kernel.scope import Scope
from noetl.results.dataset import ROWS, DatasetPart
from noetl.results.errors import ResultUnreadable
from noetl.results.nested import NestedTable
from noetl.results.proof import proven
from noetl.results.store import ResultStore
from noetl.results.tiers import JSON_MEDIA_TYPE, media_type_of
from noetl.templates.recorded import ORDER, TASKS, VALUE

HEAD_BYTES = 16 * 1024
"""Keys of canonical JSON are in order, and what names others stands before the values."""

_PLAIN = tuple(f'{{"{key}":'.encode() for key in (VALUE, ROWS, TASKS))
_ORDERED = f'{{"{ORDER}":['.encode()
_END_OF_LIST = b'],"'  # no text has it: a quote inside a text is escaped


class _Names(msgspec.Struct, frozen=True):
    """What a content says of others; its values are passed over."""

    stored: list[NestedTable] = []
    parts: list[DatasetPart] = []


class Within(NamedTuple):
    """An object that may name others."""

    uri: str
    key: str
    sha256: str | None


async def named_within(
    store: ResultStore, scope: Scope, reference: ResultReference
) -> list[ResultReference]:
    """Directly inside of it: what these name in turn is asked for in turn. Tables name nothing,
    and of other contents without names only the beginning is read.

    Raises PayloadMissing, PayloadCorrupt, ResultUnreadable, StoreUnavailable.
    """
    if is_payload_uri(reference.uri):
        return []
    if media_type_of(reference) != JSON_MEDIA_TYPE:
        return []
    try:
        name = parse_results(reference.uri)
    except NameInvalid as error:
        raise PayloadMissing(reference.uri) from error
    if name.scope != scope:
        raise PayloadMissing(reference.uri)
    asked = Within(reference.uri, store.key_of(name, JSON_MEDIA_TYPE), reference.sha256)
    try:
        head = await store.objects.read_range(asked.key, 0, HEAD_BYTES)
        data = b"" if _names_nothing(head) else await _proven(store, asked)
    except ObjectMissing as error:
        raise PayloadMissing(reference.uri) from error
    return _names_in(data) if data else []


def _names_nothing(head: bytes) -> bool:
    """Sure of it. Whatever does not begin as our contents do is read and proven."""
    if head.startswith(_ORDERED):
        _, end, rest = head.partition(_END_OF_LIST)
        return bool(end) and rest.startswith(f'{TASKS}":'.encode())
    return head.startswith(_PLAIN)


async def _proven(store: ResultStore, asked: Within) -> bytes:
    """Of damaged bytes nobody knows what they named."""
    chunks = store.objects.read(asked.key)
    if asked.sha256:
        chunks = proven(chunks, asked.uri, asked.sha256)
    return b"".join([chunk async for chunk in chunks])


def _names_in(data: bytes) -> list[ResultReference]:
    try:
        names = msgspec.json.decode(data, type=_Names)
    except msgspec.MsgspecError as error:
        raise ResultUnreadable(f"does not say what it names: {error}") from error
    nested = [table.reference for table in names.stored]
    return nested + [part.reference for part in names.parts if part.reference is not None]
