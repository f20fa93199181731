"""A producer's copy on the node: after the durable one, found by its key, and never needed."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.adapters.cache.shared_memory import SharedMemoryOptions, SharedMemoryResultCache
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.system.clock import utc_now
from noetl.domain.naming.result_name import ResultName
from noetl.kernel.errors import StoreUnavailable
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope
from noetl.ports.object_store import StoredObject
from noetl.results.dataset import frame_content
from noetl.results.payloads import ObjectPayloadStore
from noetl.results.places import ObjectSource
from noetl.results.read_chain import ReadChain
from noetl.results.sharing import Sharing
from noetl.results.store import ResultStore
from noetl.results.table_writer import TableFile
from tests.cache.chain_scene import Shelf, into_a_file
from tests.memory_results import PLACEMENT

ROWS = [{"number": number, "text": "x" * 100} for number in range(2_000)]
SCOPE = Scope("acme", "research")
NAME = ResultName(
    tenant="acme",
    project="research",
    execution_id=ExecutionId("7012345678901234567"),
    step=StepName("load"),
)


class Node:
    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        self.options = msgspec.structs.replace(
            SharedMemoryOptions(home_id="home", node_id="node", folder=folder), **changes
        )
        self.objects = MemoryObjectStore()

    def store(self, source: ObjectSource | None = None) -> ResultStore:
        """A process of the node."""
        shared = SharedMemoryResultCache(self.options, utc_now)
        chain = ReadChain([shared], source or self.objects, self.folder / "scratch")
        payloads = ObjectPayloadStore(self.objects)
        sharing = Sharing(shared, utc_now, 60.0)
        return ResultStore(self.objects, payloads, PLACEMENT, chain, sharing)

    def regions(self) -> list[Path]:
        return [path for path in self.folder.glob("noetl-*") if path.stat().st_size > 100]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


async def test_another_process_of_the_node_reads_what_was_shared_without_the_store(
    node: Node,
) -> None:
    reference = (await node.store().record(NAME, ROWS)).reference
    assert reference is not None
    nothing = Shelf(None)
    reader = node.store(nothing)

    assert await reader.content(SCOPE, reference.uri, reference) == {"value": ROWS}

    assert nothing.reads == 0
    assert reader.chain.stats().found == {"shared_memory": 1}


async def test_a_small_result_is_shared_by_its_event_alone(node: Node) -> None:
    store = node.store()
    assert (await store.record(NAME, "small")).reference is None
    assert node.regions() == []
    assert store.counts.staged == {"inline": 1}


async def test_outputs_of_frames_and_files_are_shared_too(node: Node, tmp_path: Path) -> None:
    store = node.store()
    outcomes = [{"index": row, "status": "ok", "value": row} for row in range(1_000)]
    await store.stage_rows(NAME, frame_content(outcomes))
    assert len(node.regions()) == 1
    path = tmp_path / "table.feather"
    path.write_bytes(b"a table of bytes" * 100)
    name = msgspec.structs.replace(NAME, row=1)
    table = TableFile(path, row_count=1, byte_length=1_600, schema_digest="s")

    reference = await store.stage_file(name, table)

    assert len(node.regions()) == 2
    assert store.counts.staged["feather"] == 2
    assert reference.byte_length == 1_600


class FailingStore(MemoryObjectStore):
    async def create(self, key: str, data: Any, *, media_type: str = "") -> StoredObject:
        raise StoreUnavailable("no room")


async def test_nothing_is_shared_that_is_not_durable(node: Node) -> None:
    node.objects = FailingStore()
    with pytest.raises(StoreUnavailable):
        await node.store().record(NAME, ROWS)
    assert node.regions() == []


@pytest.mark.parametrize("budget_bytes", [0, 1_000])
async def test_without_room_the_result_is_the_same_and_the_store_is_read(
    tmp_path: Path, budget_bytes: int
) -> None:
    roomy, tight = Node(tmp_path), Node(tmp_path / "tight", budget_bytes=budget_bytes)
    tight.folder.mkdir()
    expected = (await roomy.store().record(NAME, ROWS)).reference
    reference = (await tight.store().record(NAME, ROWS)).reference
    assert reference == expected
    assert reference is not None
    reader = tight.store()

    assert await reader.content(SCOPE, reference.uri, reference) == {"value": ROWS}

    assert tight.regions() == []
    assert reader.chain.stats().found == {"object_store": 1}


async def test_a_broken_folder_costs_nothing_but_the_copy(tmp_path: Path) -> None:
    folder = tmp_path / "shm"
    folder.mkdir()
    into_a_file(folder)
    reference = (await Node(folder).store().record(NAME, ROWS)).reference
    assert reference is not None


async def test_another_node_misses_and_asks_the_store(node: Node) -> None:
    reference = (await node.store().record(NAME, ROWS)).reference
    assert reference is not None
    elsewhere = Node(node.folder, node_id="elsewhere")
    elsewhere.objects = node.objects
    reader = elsewhere.store()

    assert await reader.content(SCOPE, reference.uri, reference) == {"value": ROWS}

    assert reader.chain.stats().found == {"object_store": 1}
