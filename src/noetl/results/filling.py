"""A result that its event names and the store lacks: filled in from whoever still has the bytes.

Sources are the layers of this node and the replicas of the cell. The digest decides.
"""

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import parse_results
from noetl.kernel.errors import (
    NameInvalid,
    ObjectDiffers,
    ObjectKeyInvalid,
    ObjectMissing,
    PayloadCorrupt,
    PayloadMissing,
)
from noetl.kernel.scope import Scope
from noetl.results.proof import proven
from noetl.results.store import ResultStore
from noetl.results.table_file import chunks_of
from noetl.results.tiers import media_type_of
from noetl.results.writer import cache_key

PRESENT = "present"
MISSING = "missing"
DAMAGED = "damaged"
FILLED = ("filled_memory", "filled_shared_memory", "filled_disk", "filled_replica")
MALFORMED = "malformed"
"""A name that leads to no object: what the log has it has, and nobody waits for it."""
OUTCOMES = (PRESENT, *FILLED, MISSING, DAMAGED, MALFORMED)


async def fill(store: ResultStore, scope: Scope, reference: ResultReference) -> str:
    """One of OUTCOMES. Raises StoreUnavailable.

    What is there with another length is damaged: it is told, and its repair is for people.
    """
    try:
        return await _fill(store, scope, reference)
    except (NameInvalid, ObjectKeyInvalid):
        return MALFORMED


async def _fill(store: ResultStore, scope: Scope, reference: ResultReference) -> str:
    name = parse_results(reference.uri)
    if name.scope != scope:
        return MISSING  # nobody fills in what belongs to others
    media_type = media_type_of(reference)
    key = store.key_of(name, media_type)
    facts = await store.objects.head(key)
    if facts is not None:
        is_whole = reference.byte_length in (None, facts.byte_length)
        return PRESENT if is_whole else DAMAGED
    if not reference.sha256 or reference.byte_length is None:
        return MISSING  # nothing could prove the bytes
    try:
        found = await store.chain.read(cache_key(name, reference), key)
    except (ObjectMissing, PayloadMissing, PayloadCorrupt):
        return MISSING
    chunks = proven(chunks_of(found.view), reference.uri, reference.sha256)
    try:
        await store.objects.create(key, chunks, media_type=media_type)
    except PayloadCorrupt:
        return MISSING  # a layer has let it spoil
    except ObjectDiffers:
        return DAMAGED
    filled = f"filled_{found.layer}"
    return filled if filled in FILLED else PRESENT  # somebody stored it in the meantime
