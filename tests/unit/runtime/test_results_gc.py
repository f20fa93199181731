"""Only what nobody can ask for any more goes, and only when everybody knows what is alive."""

import msgspec
import pytest

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.domain.events import ExecutionRetried, PlaybookCompleted, PlaybookFailed
from noetl.domain.events.values import Failure
from noetl.domain.projection import Cursor
from noetl.kernel.errors import CollectionRefused, LogReplaced, RequestInvalid
from noetl.kernel.instant import plus
from noetl.kernel.scope import Scope
from noetl.kernel.snowflake import minted_at
from noetl.runtime.materializer import CONSUMER as MATERIALIZER
from noetl.runtime.materializer import Materializer
from noetl.runtime.projector import CONSUMER
from noetl.runtime.results_gc import (
    CollectionRequest,
    Known,
    judge,
    names_in,
)
from noetl.testing.histories import execution_ids
from tests.unit.runtime.collecting import (
    ARCHIVED,
    CONTENT,
    DAY,
    DELETE,
    LATER,
    LIVE,
    ORPHAN,
    STEP,
    Scene,
    key_of,
    name_of,
    refers_to,
    scene,
)


async def test_only_the_orphan_goes() -> None:
    here = await scene()
    here.archived.add(ARCHIVED)
    await here.holds(key_of(LIVE), key_of(ORPHAN), key_of(ORPHAN, 2), key_of(ARCHIVED))

    report = await here.collect()

    assert await here.keys() == {key_of(LIVE), key_of(ARCHIVED)}
    assert report.objects == {"live": 1, "orphan": 2, "archived": 1}
    assert (report.deleted, report.live_candidates) == (2, 0)
    assert report.deleted_bytes == 2 * len(CONTENT)


async def test_a_materializer_that_lags_hides_nothing_from_the_log() -> None:
    """What is alive is asked of the log and its archive, never of who follows them."""
    here = await scene()
    here.archived.add(ARCHIVED)
    *_, late = execution_ids(4)
    await here.runs(late)
    await here.holds(*map(key_of, (LIVE, late, ORPHAN, ARCHIVED)))
    await Materializer(here.log, here.projections, here.results()).advance(limit=1)
    cursor = await here.projections.cursor(MATERIALIZER)
    assert cursor is not None
    behind = await here.log.tail(after_position=cursor.position)
    assert {stored.execution_id for stored in behind} == {late}

    report = await here.collect(CollectionRequest(dry_run=False, grace_seconds=0))

    assert await here.keys() == {key_of(LIVE), key_of(late), key_of(ARCHIVED)}
    assert report.objects == {"live": 2, "orphan": 1, "archived": 1}
    assert [each.key for each in report.candidates if each.deleted] == [key_of(ORPHAN)]


async def test_a_dry_run_lists_and_deletes_nothing() -> None:
    here = await scene()
    await here.holds(key_of(LIVE), key_of(ORPHAN))

    report = await here.collect(CollectionRequest())

    assert await here.keys() == {key_of(LIVE), key_of(ORPHAN)}
    assert [(each.key, each.verdict, each.deleted) for each in report.candidates] == [
        (key_of(ORPHAN), "orphan", False)
    ]
    assert (report.dry_run, report.deleted, report.live_candidates) == (True, 0, 0)


async def test_what_is_younger_than_the_grace_stays() -> None:
    here = await scene()
    await here.holds(key_of(ORPHAN))
    here.clock.moment = plus(minted_at(ORPHAN), seconds=DAY - 1)

    report = await here.collect()
    assert (report.objects, await here.keys()) == ({"young": 1}, {key_of(ORPHAN)})


async def test_what_is_not_exactly_a_key_of_ours_is_left_alone() -> None:
    here = await scene()
    others = Scope("other", "project")
    prefix = key_of(ORPHAN).partition("shard=")[0]
    strange = (
        f"{prefix}notes.txt",
        key_of(ORPHAN).replace("/results/", "/exports/"),
        key_of(ORPHAN, scope=others),
        key_of(ORPHAN).replace("/shard=0", "/shard=9"),
    )
    elsewhere = ("default/default/ab/cd/payload", key_of(ORPHAN).replace("cell=one", "cell=two"))
    await here.holds(*strange, *elsewhere)

    report = await here.collect()

    assert await here.keys() == {*strange, *elsewhere}
    assert report.objects == {"foreign": len(strange)}  # what is not below our cell is not listed


async def test_nothing_is_collected_while_read_models_lag_beyond_the_grace() -> None:
    here = await scene()
    await here.holds(key_of(ORPHAN))
    await here.begins(ARCHIVED)

    for request in (DELETE, CollectionRequest()):
        with pytest.raises(CollectionRefused, match="behind the log"):
            await here.collect(request)
    assert await here.keys() == {key_of(ORPHAN)}

    await here.catches_up()
    assert (await here.collect()).deleted == 1


async def test_a_lag_within_the_grace_is_no_obstacle() -> None:
    here = await scene()
    await here.holds(key_of(ORPHAN))
    here.recorded_at = plus(LATER, seconds=-60)
    await here.begins(ARCHIVED)

    assert (await here.collect()).deleted == 1


async def test_read_models_of_another_log_are_a_warning() -> None:
    here = await scene()
    await here.projections.clear()
    await here.projections.save([], Cursor(consumer=CONSUMER, log_identity="other", position=9))

    with pytest.raises(LogReplaced):
        await here.collect(CollectionRequest())


async def test_an_empty_log_proves_nothing_dead() -> None:
    here = Scene()
    await here.holds(key_of(ORPHAN))
    assert (await here.collect(CollectionRequest())).objects == {"orphan": 1}
    with pytest.raises(CollectionRefused, match="no event at all"):
        await here.collect()
    assert await here.keys() == {key_of(ORPHAN)}


async def test_a_negative_grace_is_refused() -> None:
    with pytest.raises(RequestInvalid):
        await (await scene()).collect(CollectionRequest(grace_seconds=-1))


async def test_what_comes_to_life_after_it_was_listed_stays() -> None:
    here = await scene()
    await here.holds(key_of(ORPHAN), key_of(ORPHAN, 2))

    class Awakening(MemoryObjectStore):
        """After the first object is deleted, the first event of the execution appears."""

        async def delete(self, key: str) -> None:
            await super().delete(key)
            await here.runs(ORPHAN)

    awakening = Awakening()
    for facts in await here.objects.list_objects(""):
        await awakening.create(facts.key, CONTENT)
    here.objects = awakening

    report = await here.collect()

    assert await here.keys() == {key_of(ORPHAN, 2)}
    assert (report.deleted, report.live_candidates) == (1, 1)


async def test_attempts_that_no_event_names_are_listed_and_left_alone() -> None:
    here = await scene()
    await here.runs(ORPHAN, PlaybookCompleted(result=refers_to(ORPHAN, 2)))
    await here.holds(key_of(ORPHAN, 1), key_of(ORPHAN, 2))

    report = await here.collect()
    assert report.objects == {"superseded": 1, "live": 1}
    assert [(each.key, each.deleted) for each in report.candidates] == [(key_of(ORPHAN), False)]
    report = await here.collect(CollectionRequest(dry_run=False, superseded=True))
    assert (report.deleted, await here.keys()) == (1, {key_of(ORPHAN, 2)})


async def test_what_may_be_retried_keeps_all_its_attempts() -> None:
    here = await scene()
    failure = Failure(kind="unknown", message="it broke")
    await here.runs(ORPHAN, PlaybookFailed(error=failure))
    await here.holds(key_of(ORPHAN), key_of(LIVE))

    report = await here.collect(CollectionRequest(dry_run=False, superseded=True))
    assert report.objects == {"live": 2}  # one failed, the other still runs


async def test_a_retry_brings_a_completed_execution_back_to_life() -> None:
    here = await scene()
    await here.runs(ORPHAN, PlaybookCompleted(), ExecutionRetried(step=STEP, visit=1))
    await here.holds(key_of(ORPHAN))

    report = await here.collect(CollectionRequest(dry_run=False, superseded=True))

    assert (report.objects, report.deleted) == ({"live": 1}, 0)


async def test_pages_of_the_store_are_followed_to_the_end() -> None:
    here = await scene()
    await here.holds(*(key_of(ORPHAN, attempt) for attempt in range(1, 2_102)))

    report = await here.collect()

    assert (report.deleted, await here.keys()) == (2_101, set())
    assert (len(report.candidates), report.candidates_omitted) == (1_000, 1_101)


def test_names_are_found_wherever_they_stand_in_an_event() -> None:
    name = name_of(LIVE)
    body = msgspec.json.encode({"writes": {"deep": [{"_ref": name.uri}]}, "text": "noetl://x"})
    assert names_in(body) == {name}


def test_too_many_names_are_a_reason_to_leave_everything() -> None:
    known = Known(minted=minted_at(LIVE), version=9, completed_at=minted_at(LIVE), names=None)
    assert judge(name_of(LIVE), known, LATER, DAY) == "live"
