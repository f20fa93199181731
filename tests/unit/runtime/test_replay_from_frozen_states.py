"""A frozen state saves time and never changes the answer; one that does not fit is passed over."""

from typing import Any

import msgspec
import pytest

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.snapshot_store import MemorySnapshotStore
from noetl.domain.execution.fold import FOLD_VERSION
from noetl.domain.log import AtEvent, AtPosition, Cutoff
from noetl.domain.snapshots import Snapshot
from noetl.kernel import canonical_json
from noetl.kernel.errors import CutoffInvalid
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.replay import Replay, Replayed, ReplayRequest
from noetl.testing.histories import PLAYBOOK_DIGEST
from noetl.wire.upcasters import RELEASED
from noetl.wire.upcasting import Upcaster, UpcasterRegistry
from tests.unit.runtime.written import FIRST, Ticking, at_second, whole_run, write

RUN = whole_run()


def request(cutoff: Cutoff | None = None) -> ReplayRequest:
    return ReplayRequest(scope=DEFAULT_SCOPE, execution_id=FIRST, cutoff=cutoff)


def at(version: int) -> AtEvent:
    return AtEvent(RUN[version - 1].event_id)


class Setting:
    """A log, the frozen states of it, and replays with and without them."""

    def __init__(self, log: MemoryEventLog) -> None:
        self.log = log
        self.frozen = MemorySnapshotStore()

    async def freeze(self, version: int, **damage: Any) -> Snapshot:
        snapshot = await Replay(self.log).take_snapshot(request(at(version)), at_second(99))
        damaged = msgspec.structs.replace(snapshot, **damage)
        await self.frozen.save(damaged)
        return damaged

    async def replay(self, cutoff: Cutoff | None = None, **options: Any) -> Replayed:
        return await Replay(self.log, self.frozen).state(request(cutoff), **options)

    async def full(self, cutoff: Cutoff | None = None) -> Replayed:
        return await Replay(self.log).state(request(cutoff))


@pytest.fixture
async def setting() -> Setting:
    log = MemoryEventLog(Ticking())
    await write(log, FIRST, RUN, 3)
    return Setting(log)


async def test_a_frozen_state_says_what_it_stands_for(setting: Setting) -> None:
    snapshot = await setting.freeze(10)
    state = (await setting.full(at(10))).state
    assert snapshot == Snapshot(
        scope=DEFAULT_SCOPE,
        execution_id=FIRST,
        stream_version=10,
        position=10,
        last_event_id=RUN[9].event_id,
        fold_version=FOLD_VERSION,
        registry_digest=RELEASED.digest,
        canonical_form="c1",
        playbook_digest=PLAYBOOK_DIGEST,
        payload_chain=state.execution.payload_refs.digest,
        state=canonical_json.encode(state),
        checksum=canonical_json.checksum(state),
        taken_at=at_second(99),
    )


async def test_only_the_events_after_it_are_folded(setting: Setting) -> None:
    snapshot = await setting.freeze(10)

    was = await setting.replay()

    assert was.state == (await setting.full()).state
    assert was.report.checksum == (await setting.full()).report.checksum
    assert was.report.events_folded == len(RUN) - 10
    assert was.report.event_count == len(RUN)
    assert was.report.position == len(RUN)
    assert was.report.snapshot.stream_version == 10
    assert was.report.snapshot.checksum == snapshot.checksum
    assert was.report.snapshot.refused == ()


async def test_a_state_frozen_at_the_cutoff_needs_no_event(setting: Setting) -> None:
    await setting.freeze(10)
    was = await setting.replay(at(10))
    assert was.report.events_folded == 0
    assert was.report.position == 10
    assert was.state == (await setting.full(at(10))).state


async def test_a_state_frozen_after_the_cutoff_is_not_looked_at(setting: Setting) -> None:
    await setting.freeze(10)
    was = await setting.replay(at(9))
    assert was.report.snapshot.stream_version is None
    assert was.report.events_folded == 9
    assert was.state == (await setting.full(at(9))).state


async def test_the_newest_one_is_taken(setting: Setting) -> None:
    for version in (4, 12, 8):
        await setting.freeze(version)
    assert (await setting.replay()).report.snapshot.stream_version == 12
    assert (await setting.replay(at(11))).report.snapshot.stream_version == 8


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"fold_version": FOLD_VERSION + 1}, "made by fold"),
    ({"registry_digest": "00" * 32}, "made with another set of upcasters"),
    ({"canonical_form": "c0"}, "made in canonical form c0"),
    ({"checksum": "00" * 32}, "its bytes do not match its checksum"),
    ({"state": b"{}"}, "its bytes do not match its checksum"),
]


@pytest.mark.parametrize(("damage", "reason"), REFUSED, ids=[str(damage) for damage, _ in REFUSED])
async def test_one_that_does_not_fit_is_refused_and_the_next_older_is_used(
    setting: Setting, damage: dict[str, Any], reason: str
) -> None:
    await setting.freeze(6)
    await setting.freeze(10, **damage)

    was = await setting.replay()

    (refused,) = was.report.snapshot.refused
    assert refused.stream_version == 10
    assert reason in refused.reason
    assert was.report.snapshot.stream_version == 6
    assert was.report.events_folded == len(RUN) - 6
    assert was.report.checksum == (await setting.full()).report.checksum


async def test_when_none_fits_everything_is_folded(setting: Setting) -> None:
    await setting.freeze(6, fold_version=FOLD_VERSION - 1)
    await setting.freeze(10, checksum="00" * 32)
    was = await setting.replay()
    assert [each.stream_version for each in was.report.snapshot.refused] == [10, 6]
    assert was.report.snapshot.stream_version is None
    assert was.report.events_folded == len(RUN)
    assert was.report.checksum == (await setting.full()).report.checksum


async def test_a_replay_with_other_upcasters_does_not_trust_it(setting: Setting) -> None:
    await setting.freeze(10)
    own = UpcasterRegistry([Upcaster("noetl.step.enter", 1, 2, lambda body: body)])
    was = await Replay(setting.log, setting.frozen, own).state(request())
    assert was.report.events_folded == len(RUN)
    assert was.report.snapshot.refused[0].reason == "made with another set of upcasters"


async def test_who_wants_finished_rows_gets_every_event_folded(setting: Setting) -> None:
    await setting.freeze(10)
    surfaces: list[str] = []
    was = await setting.replay(sink=lambda surface, _: surfaces.append(surface))
    assert was.report.events_folded == len(RUN)
    assert was.report.snapshot.stream_version is None
    assert sorted(surfaces) == ["commands", "frames", "frames", "loops", "stages"]


@pytest.mark.parametrize("version", range(1, len(RUN) + 1))
async def test_wherever_it_was_frozen_the_answer_is_the_same(
    setting: Setting, version: int
) -> None:
    await setting.freeze(version)
    was, full = await setting.replay(), await setting.full()
    assert was.report.snapshot.stream_version == version
    assert was.report.projection_checksums == full.report.projection_checksums
    assert canonical_json.encode(was.state) == canonical_json.encode(full.state)


async def test_before_the_first_event_there_is_nothing_to_freeze(setting: Setting) -> None:
    with pytest.raises(CutoffInvalid, match="nothing to freeze"):
        await Replay(setting.log).take_snapshot(request(AtPosition(0)), at_second(99))
