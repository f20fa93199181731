"""Frame journals in an object store: one object per append."""

import asyncio
from pathlib import Path

import pytest

from noetl.adapters.filesystem.object_store import FilesystemObjectStore
from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.objectstore.connect import open_store
from noetl.domain.naming.placement import CellPlacement
from noetl.kernel.ids import ExecutionId, FrameId
from noetl.kernel.instant import Instant
from noetl.ports.object_store import ObjectStore
from noetl.results.errors import ResultUnreadable
from noetl.results.frame_journal import ObjectFrameJournal
from noetl.servers.seaweedfs import SeaweedS3Server
from noetl.testing.compliance.frame_journal import (
    ENDED,
    EXECUTION,
    FRAME,
    MARK,
    NEIGHBOURS,
    FrameJournalCompliance,
    Reopen,
    Tear,
    entry,
)

PLACEMENT = CellPlacement("test", "here", "one")
FOLDER = f"noetl/journals/env=test/region=here/cell=one/{EXECUTION}/{FRAME}/"
LONG_AGO, FAR_AHEAD = Instant("2001-01-01T00:00:00.000000Z"), Instant("2999-01-01T00:00:00.000000Z")


class Suite(FrameJournalCompliance):
    @pytest.fixture
    def frame_journal(self, objects: ObjectStore) -> ObjectFrameJournal:
        return ObjectFrameJournal(objects, PLACEMENT, "first")

    @pytest.fixture
    def reopen(self, objects: ObjectStore) -> Reopen:
        names = (f"later-{number}" for number in range(10))
        return lambda: ObjectFrameJournal(objects, PLACEMENT, next(names))

    @pytest.fixture
    def tear(self) -> Tear:
        pytest.skip("J3: an object is whole or has not been created (O3)")

    async def test_an_append_whose_object_never_came_leaves_the_rest(
        self, frame_journal: ObjectFrameJournal, objects: ObjectStore
    ) -> None:
        for row in range(3):
            await frame_journal.append(EXECUTION, FRAME, [entry(row)])
        (_, second, _) = [facts.key for facts in await objects.list_objects(FOLDER)]
        await objects.delete(second)
        await frame_journal.append(EXECUTION, FRAME, [entry(3)])
        assert await frame_journal.read(EXECUTION, FRAME) == [entry(0), entry(2), entry(3)]

    async def test_the_next_holder_writes_behind_the_one_before_it(
        self, frame_journal: ObjectFrameJournal, reopen: Reopen
    ) -> None:
        written = [MARK, *(entry(row) for row in range(12)), ENDED]
        for each in written[:11]:
            await frame_journal.append(EXECUTION, FRAME, [each])
        later = reopen()
        for each in written[11:]:
            await later.append(EXECUTION, FRAME, [each])
        assert await reopen().read(EXECUTION, FRAME) == written

    async def test_appends_at_once_have_keys_of_their_own(
        self, frame_journal: ObjectFrameJournal, reopen: Reopen
    ) -> None:
        """Equal bytes too: two writers of one mark are two objects."""
        writers = (frame_journal, reopen())
        await asyncio.gather(
            *(writers[turn % 2].append(EXECUTION, FRAME, [MARK]) for turn in range(20))
        )
        assert await reopen().read(EXECUTION, FRAME) == [MARK] * 20

    async def test_a_damaged_journal_is_not_taken_for_an_empty_one(
        self, frame_journal: ObjectFrameJournal, objects: ObjectStore
    ) -> None:
        await frame_journal.append(EXECUTION, FRAME, [entry(1)])
        (facts,) = await objects.list_objects(FOLDER)
        await objects.replace(facts.key, b'{"row":')
        with pytest.raises(ResultUnreadable, match="is no journal"):
            await frame_journal.read(EXECUTION, FRAME)

    async def test_an_execution_that_is_over_takes_its_journals_along(
        self, frame_journal: ObjectFrameJournal
    ) -> None:
        for execution, frame in ((EXECUTION, FRAME), *NEIGHBOURS):
            await frame_journal.append(execution, frame, [entry(5)])

        await frame_journal.forget(EXECUTION)

        for execution, frame in ((EXECUTION, FRAME), *NEIGHBOURS):
            left = [] if execution == EXECUTION else [entry(5)]
            assert await frame_journal.read(execution, frame) == left


class TestJournalInMemory(Suite):
    @pytest.fixture
    def objects(self) -> ObjectStore:
        return MemoryObjectStore()


class TestJournalInAFolder(Suite):
    @pytest.fixture
    def objects(self, tmp_path: Path) -> ObjectStore:
        return FilesystemObjectStore(tmp_path)

    async def test_journals_go_when_nothing_was_written_for_long(
        self, frame_journal: ObjectFrameJournal, reopen: Reopen
    ) -> None:
        executions = [ExecutionId(name) for name in ("7311", "7312", "7313")]
        for execution in executions:
            for frame in (FRAME, FrameId("other")):
                await frame_journal.append(execution, frame, [entry(1)])
        await frame_journal.forget_untouched(LONG_AGO)
        assert [await reopen().read(each, FRAME) for each in executions] == [[entry(1)]] * 3
        await frame_journal.forget_untouched(FAR_AHEAD)
        assert [await reopen().read(each, FRAME) for each in executions] == [[]] * 3


@pytest.mark.servers
class TestJournalOnS3(Suite):
    @pytest.fixture
    def objects(self, s3_server: SeaweedS3Server, s3_bucket: str) -> ObjectStore:
        config = {
            "endpoint": s3_server.endpoint,
            "access_key_id": s3_server.access_key,
            "secret_access_key": s3_server.secret_key,
            "region": s3_server.region,
        }
        return open_store(f"s3://{s3_bucket}/below", config, allow_http=True)
