"""The SnapshotStore's promises as tests. An adapter passes by giving a `snapshot_store`."""

import asyncio
from abc import ABC, abstractmethod
from typing import Any

import pytest

from noetl.domain.snapshots import Snapshot
from noetl.kernel import canonical_json
from noetl.kernel.ids import EventId, ExecutionId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE, Scope
from noetl.ports.snapshot_store import CANDIDATES_MAX, SnapshotStore
from noetl.testing.histories import PLAYBOOK_DIGEST, execution_ids

FIRST, SECOND = execution_ids(2)
OTHER_SCOPES = [Scope("acme", "default"), Scope("default", "research"), Scope("acme", "research")]
ANY_VERSION = 2**62


def snapshot(version: int, state: bytes = b'{"status":"RUNNING"}', **fields: Any) -> Snapshot:
    given: dict[str, Any] = {
        "scope": DEFAULT_SCOPE,
        "execution_id": FIRST,
        "stream_version": version,
        "position": version * 10,
        "last_event_id": EventId("7012345678901234567"),
        "fold_version": 1,
        "registry_digest": "ab" * 32,
        "canonical_form": canonical_json.FORM,
        "playbook_digest": PLAYBOOK_DIGEST,
        "payload_chain": "cd" * 32,
        "state": state,
        "checksum": canonical_json.sha256_hex(state),
        "taken_at": Instant("2026-01-01T00:00:00.000000Z"),
    }
    return Snapshot(**given | fields)


async def versions(store: SnapshotStore, **asked: Any) -> list[int]:
    given: dict[str, Any] = {"at_or_before": ANY_VERSION}
    found = await store.candidates(DEFAULT_SCOPE, FIRST, **given | asked)
    return [each.stream_version for each in found]


class SnapshotStoreCompliance(ABC):
    @pytest.fixture
    @abstractmethod
    def snapshot_store(self) -> SnapshotStore: ...

    @pytest.mark.parametrize(
        "saved",
        [
            snapshot(1),
            snapshot(2**40, bytes(range(256)) * 1000, position=2**50, fold_version=7),
            snapshot(1, b"", playbook_digest=None, canonical_form="c9"),
            snapshot(1, checksum="0" * 64),
        ],
        ids=["plain", "large and binary", "nothing in it", "damaged: its reader must see that"],
    )
    async def test_s1_a_snapshot_loads_equal(
        self, snapshot_store: SnapshotStore, saved: Snapshot
    ) -> None:
        await snapshot_store.save(saved)

        found = await snapshot_store.candidates(
            DEFAULT_SCOPE, FIRST, at_or_before=saved.stream_version
        )

        assert found == [saved]

    async def test_s2_candidates_are_newest_first_and_not_after_the_cutoff(
        self, snapshot_store: SnapshotStore
    ) -> None:
        for version in (300, 100, 400, 200):
            await snapshot_store.save(snapshot(version))

        assert await versions(snapshot_store) == [400, 300, 200, 100]
        assert await versions(snapshot_store, at_or_before=300) == [300, 200, 100]
        assert await versions(snapshot_store, at_or_before=299) == [200, 100]
        assert await versions(snapshot_store, at_or_before=99) == []
        assert await versions(snapshot_store, at_or_before=399, limit=2) == [300, 200]

    async def test_s2_candidates_are_bounded(self, snapshot_store: SnapshotStore) -> None:
        last = CANDIDATES_MAX + 4
        for version in range(1, last + 1):
            await snapshot_store.save(snapshot(version))

        assert await versions(snapshot_store) == list(range(last, last - CANDIDATES_MAX, -1))

    async def test_s3_the_same_version_is_replaced(self, snapshot_store: SnapshotStore) -> None:
        newer = snapshot(
            5,
            b"{}",
            position=77,
            last_event_id=EventId("7012345678901234999"),
            fold_version=2,
            registry_digest="ef" * 32,
            canonical_form="c2",
            playbook_digest=None,
            payload_chain="01" * 32,
            taken_at=Instant("2026-01-02T00:00:00.000000Z"),
        )
        await snapshot_store.save(snapshot(4))
        await snapshot_store.save(snapshot(5))
        await snapshot_store.save(newer)

        found = await snapshot_store.candidates(DEFAULT_SCOPE, FIRST, at_or_before=5)

        assert found == [newer, snapshot(4)]

    async def test_s3_sixteen_racers_leave_one_whole_snapshot(
        self, snapshot_store: SnapshotStore
    ) -> None:
        racers = [snapshot(5, b"%d" % number, position=number) for number in range(16)]

        await asyncio.gather(*(snapshot_store.save(each) for each in racers))

        (winner,) = await snapshot_store.candidates(DEFAULT_SCOPE, FIRST, at_or_before=5)
        assert winner in racers

    async def test_s4_other_scopes_and_executions_are_never_returned(
        self, snapshot_store: SnapshotStore
    ) -> None:
        strangers = [snapshot(9, scope=scope) for scope in OTHER_SCOPES]
        for each in [*strangers, snapshot(8, execution_id=SECOND)]:
            await snapshot_store.save(each)
        assert await versions(snapshot_store) == []
        await snapshot_store.save(snapshot(9, b"mine"))

        assert await snapshot_store.candidates(DEFAULT_SCOPE, FIRST, at_or_before=9) == [
            snapshot(9, b"mine")
        ]
        for scope, stranger in zip(OTHER_SCOPES, strangers, strict=True):
            found = await snapshot_store.candidates(scope, FIRST, at_or_before=9)
            assert found == [stranger]

    @pytest.mark.parametrize("name", ["abc", "", "9" * 30, f"{FIRST}/all"])
    async def test_s4_an_id_that_no_log_made_has_no_snapshots(
        self, snapshot_store: SnapshotStore, name: str
    ) -> None:
        await snapshot_store.save(snapshot(1))
        asked = ExecutionId(name)

        found = await snapshot_store.candidates(DEFAULT_SCOPE, asked, at_or_before=ANY_VERSION)

        assert found == []
        assert await snapshot_store.prune(DEFAULT_SCOPE, asked, keep=0) == 0
        assert await versions(snapshot_store) == [1]

    async def test_s4_pruning_touches_no_other_scope_or_execution(
        self, snapshot_store: SnapshotStore
    ) -> None:
        strangers = [snapshot(9, scope=scope) for scope in OTHER_SCOPES]
        for each in [*strangers, snapshot(8, execution_id=SECOND), snapshot(9)]:
            await snapshot_store.save(each)

        assert await snapshot_store.prune(DEFAULT_SCOPE, FIRST, keep=0) == 1

        kept = [
            *[
                await snapshot_store.candidates(each, FIRST, at_or_before=9)
                for each in OTHER_SCOPES
            ],
            await snapshot_store.candidates(DEFAULT_SCOPE, SECOND, at_or_before=9),
        ]
        assert kept == [[each] for each in [*strangers, snapshot(8, execution_id=SECOND)]]

    @pytest.mark.parametrize(
        ("keep", "left"), [(0, []), (1, [40]), (3, [40, 30, 20]), (4, [40, 30, 20, 10]), (9, None)]
    )
    async def test_s5_prune_keeps_the_newest(
        self, snapshot_store: SnapshotStore, keep: int, left: list[int] | None
    ) -> None:
        saved = [40, 30, 20, 10]
        for version in (20, 40, 10, 30):
            await snapshot_store.save(snapshot(version))

        removed = await snapshot_store.prune(DEFAULT_SCOPE, FIRST, keep=keep)

        expected = saved if left is None else left
        assert removed == len(saved) - len(expected)
        assert await versions(snapshot_store) == expected
        assert await snapshot_store.prune(DEFAULT_SCOPE, FIRST, keep=keep) == 0
