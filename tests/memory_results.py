"""Results for tests: the real store, over objects in memory that a test may look at."""

import tempfile
from pathlib import Path

from noetl.domain.naming.placement import CellPlacement
from noetl.results.read_chain import ReadChain
from noetl.results.store import ResultStore
from tests.memory_payloads import MemoryPayloadStore

PLACEMENT = CellPlacement("test", "here", "one")


def memory_results(payloads: MemoryPayloadStore | None = None) -> ResultStore:
    payloads = payloads or MemoryPayloadStore()
    chain = ReadChain([], payloads.objects, Path(tempfile.gettempdir()))
    return ResultStore(payloads.objects, payloads, PLACEMENT, chain)
