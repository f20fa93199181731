"""The ProjectionStore's promises as tests. An adapter passes by giving a `projection_store`."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable

import pytest

from noetl.domain.projection import ProjectionRecord
from noetl.kernel import canonical_json
from noetl.kernel.errors import InvariantBroken, LogReplaced
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.projection_store import ProjectionStore
from noetl.testing.compliance.projection_queries import ProjectionQueryCompliance
from noetl.testing.projections import (
    FIRST,
    NOT_MADE_BY_A_LOG,
    OTHER_ORGANIZATION,
    OTHER_TENANT,
    SECOND,
    THIRD,
    cursor_at,
    ids,
    query,
    record,
)

Reopen = Callable[[ProjectionStore], Awaitable[ProjectionStore]]


async def version_of(store: ProjectionStore, projection_id: str = "a") -> int | None:
    found = await store.load(DEFAULT_SCOPE, "command", projection_id)
    return None if found is None else found.version


class ProjectionStoreCompliance(ProjectionQueryCompliance):
    @pytest.fixture
    @abstractmethod
    def reopen(self) -> Reopen:
        """Open what the store saved as another process would, after this one died."""

    async def test_p1_a_record_loads_equal(self, projection_store: ProjectionStore) -> None:
        state = {
            "text": 'Grüße, "мир" 🌍 \u0000\u001f\u2028 \\ /',
            "numbers": [0, -1, 2**53 + 1, 2**63 - 1, 1.5, 1e300, -0.0],
            "nothing": None,
            "nested": {"": [], "b": [{"c": True}]},
        }
        saved = record(
            state,
            projection_id="Grüße/🌍@1",
            version=2**40,
            position=2**50,
            meta={"event_count": 3, "projection_lag_ms": 12, "zone": {"name": "é"}},
        )
        await projection_store.save([saved])

        loaded = await projection_store.load(DEFAULT_SCOPE, "command", "Grüße/🌍@1")

        assert loaded == saved
        assert loaded is not None
        assert loaded.canonical == saved.canonical
        assert loaded.state == state

    async def test_p1_what_was_never_saved_is_none(self, projection_store: ProjectionStore) -> None:
        await projection_store.save([record()])

        assert await projection_store.load(DEFAULT_SCOPE, "command", "b") is None
        assert await projection_store.load(DEFAULT_SCOPE, "stage", "a") is None
        assert await projection_store.load(OTHER_TENANT, "command", "a") is None
        assert await projection_store.load(OTHER_ORGANIZATION, "command", "a") is None

    async def test_p2_a_newer_version_replaces_every_field(
        self, projection_store: ProjectionStore
    ) -> None:
        newer = record(
            {"status": "DONE"},
            execution_id=SECOND,
            version=2,
            position=9,
            source_event_id=EventId("7012345678901234999"),
            meta={"event_count": 4},
        )
        assert await projection_store.save([record()]) == 0
        assert await projection_store.save([newer]) == 0
        assert await projection_store.load(DEFAULT_SCOPE, "command", "a") == newer
        assert ids(await projection_store.query(query(execution_id=SECOND))) == ["a"]
        assert await projection_store.query(query(execution_id=FIRST)) == []

    @pytest.mark.parametrize("version", [1, 2, 3])
    async def test_p2_an_older_or_equal_version_is_stale(
        self, projection_store: ProjectionStore, version: int
    ) -> None:
        kept = record(version=3, position=30)
        await projection_store.save([kept])

        late = record({"status": "LATE"}, version=version, position=99)

        assert await projection_store.save([late]) == 1
        assert await projection_store.load(DEFAULT_SCOPE, "command", "a") == kept

    async def test_p2_versions_rise_within_a_batch_too(
        self, projection_store: ProjectionStore
    ) -> None:
        versions = [2, 5, 4, 5, 6]
        other = record(projection_id="b")

        stale = await projection_store.save([record(version=each) for each in versions] + [other])

        assert stale == 2
        assert (await version_of(projection_store), await version_of(projection_store, "b")) == (
            6,
            1,
        )

    async def test_p2_sixteen_racers_end_at_the_highest(
        self, projection_store: ProjectionStore
    ) -> None:
        for race in range(5):
            versions = [race * 16 + offset * 7 % 16 + 1 for offset in range(16)]
            racers = (
                projection_store.save([record({"version": version}, version=version)])
                for version in versions
            )
            await asyncio.gather(*racers)

            winner = await projection_store.load(DEFAULT_SCOPE, "command", "a")

            assert winner is not None
            assert (winner.version, winner.state) == (max(versions), {"version": max(versions)})

    @pytest.mark.parametrize(
        "refused",
        [
            record(projection_id="c", checksum="0" * 64),
            record(projection_id="c", canonical=b"[]", checksum=canonical_json.sha256_hex(b"[]")),
            record(projection_id="c", canonical=b"{", checksum=canonical_json.sha256_hex(b"{")),
        ],
        ids=["wrong checksum", "not an object", "not JSON"],
    )
    async def test_p3_a_refused_record_takes_the_batch_with_it(
        self, projection_store: ProjectionStore, refused: ProjectionRecord
    ) -> None:
        await projection_store.save([record()], cursor_at(1))
        batch = [record(version=2), record(projection_id="b"), refused, record(projection_id="d")]

        with pytest.raises(InvariantBroken):
            await projection_store.save(batch, cursor_at(2))

        assert await projection_store.query(query()) == [record()]
        assert await projection_store.cursor("projector/0") == cursor_at(1)

    async def test_p3_a_refused_cursor_takes_its_records_with_it(
        self, projection_store: ProjectionStore
    ) -> None:
        await projection_store.save([record()], cursor_at(1))

        with pytest.raises(LogReplaced):
            await projection_store.save(
                [record(version=2), record(projection_id="b")], cursor_at(2, log="log-2")
            )

        assert await projection_store.query(query()) == [record()]

    async def test_p3_a_reader_under_load_never_sees_the_cursor_ahead(
        self, projection_store: ProjectionStore
    ) -> None:
        async def write() -> None:
            for version in range(1, 101):
                await projection_store.save([record(version=version)], cursor_at(version))

        writing = asyncio.create_task(write())
        while not writing.done():
            cursor = await projection_store.cursor("projector/0")
            version = await version_of(projection_store)
            assert (version or 0) >= (0 if cursor is None else cursor.position)
            await asyncio.sleep(0)
        await writing
        assert await projection_store.cursor("projector/0") == cursor_at(100)

    async def test_p5_a_cursor_never_moves_back(self, projection_store: ProjectionStore) -> None:
        assert await projection_store.cursor("projector/0") is None
        moves = [cursor_at(5), cursor_at(7), cursor_at(6), cursor_at(7)]

        stale = [await projection_store.save([], move) for move in moves]

        assert stale == [0, 0, 0, 0]
        assert await projection_store.cursor("projector/0") == cursor_at(7)

    async def test_p5_a_save_behind_the_cursor_still_counts(
        self, projection_store: ProjectionStore
    ) -> None:
        await projection_store.save([], cursor_at(7))
        await projection_store.save([record()], cursor_at(3))

        assert await version_of(projection_store) == 1
        assert await projection_store.cursor("projector/0") == cursor_at(7)

    async def test_p5_each_consumer_has_its_own_cursor(
        self, projection_store: ProjectionStore
    ) -> None:
        other = cursor_at(2, consumer="projector/1", log="log-2")
        await projection_store.save([], cursor_at(5))
        await projection_store.save([], other)

        assert await projection_store.cursor("projector/0") == cursor_at(5)
        assert await projection_store.cursor("projector/1") == other

    async def test_p5_a_cursor_of_another_log_is_refused(
        self, projection_store: ProjectionStore
    ) -> None:
        await projection_store.save([], cursor_at(5))

        for position in (1, 5, 9):
            with pytest.raises(LogReplaced) as raised:
                await projection_store.save([], cursor_at(position, log="log-2"))
            assert raised.value.consumer == "projector/0"

        assert await projection_store.cursor("projector/0") == cursor_at(5)

    async def test_p5_sixteen_racing_cursors_end_at_the_highest(
        self, projection_store: ProjectionStore
    ) -> None:
        positions = [offset * 7 % 16 + 1 for offset in range(16)]

        await asyncio.gather(*(projection_store.save([], cursor_at(each)) for each in positions))

        assert await projection_store.cursor("projector/0") == cursor_at(16)

    async def test_p6_records_and_cursors_survive_the_process(
        self, projection_store: ProjectionStore, reopen: Reopen
    ) -> None:
        saved = [record(projection_id=name, version=3, meta={"n": 1}) for name in "abc"]
        await projection_store.save(saved, cursor_at(3))

        opened = await reopen(projection_store)

        assert await opened.query(query()) == saved
        assert await opened.cursor("projector/0") == cursor_at(3)
        assert await opened.save([record(version=2)]) == 1

    async def test_p7_removing_an_execution_removes_nothing_else(
        self, projection_store: ProjectionStore
    ) -> None:
        gone = [record(), record(projection_type="stage"), record(projection_id="b")]
        kept = [
            record(scope=OTHER_TENANT),
            record(scope=OTHER_ORGANIZATION),
            record(projection_id="c", execution_id=SECOND),
        ]
        await projection_store.save([*gone, *kept], cursor_at(4))

        assert await projection_store.remove(DEFAULT_SCOPE, FIRST) == len(gone)
        assert await projection_store.remove(DEFAULT_SCOPE, FIRST) == 0
        assert await projection_store.remove(DEFAULT_SCOPE, THIRD) == 0

        for each in gone:
            assert await projection_store.load(*_key(each)) is None
        for each in kept:
            assert await projection_store.load(*_key(each)) == each
        assert await projection_store.cursor("projector/0") == cursor_at(4)

    @pytest.mark.parametrize("execution", NOT_MADE_BY_A_LOG)
    async def test_p7_an_id_that_no_log_made_removes_nothing(
        self, projection_store: ProjectionStore, execution: ExecutionId
    ) -> None:
        await projection_store.save([record()])
        assert await projection_store.remove(DEFAULT_SCOPE, execution) == 0
        assert await version_of(projection_store) == 1

    async def test_p8_a_cleared_store_takes_another_log(
        self, projection_store: ProjectionStore
    ) -> None:
        await projection_store.save([record(version=9), record(scope=OTHER_TENANT)], cursor_at(9))

        await projection_store.clear()

        assert await projection_store.load(OTHER_TENANT, "command", "a") is None
        assert await projection_store.cursor("projector/0") is None
        assert await projection_store.save([record()], cursor_at(1, log="log-2")) == 0
        assert await projection_store.query(query()) == [record()]


def _key(each: ProjectionRecord) -> tuple[Scope, str, str]:
    return each.scope, each.projection_type, each.projection_id
