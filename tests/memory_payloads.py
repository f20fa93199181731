"""A payload store for tests: the real one, over objects in memory that a test may look at."""

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.results.payloads import ObjectPayloadStore


class MemoryPayloadStore(ObjectPayloadStore):
    def __init__(self) -> None:
        self.objects = MemoryObjectStore()
        super().__init__(self.objects)

    async def damage(self, data: bytes) -> None:
        """Write these bytes in the place of every object."""
        for facts in await self.objects.list_objects(""):
            await self.objects.replace(facts.key, data)
