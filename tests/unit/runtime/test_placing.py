"""Work goes to the nearest worker that is free, and its event says how near that was."""

from collections.abc import Iterator

import msgspec
import pytest

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.distance import Distance, Preference
from noetl.domain.naming.locator import Locality
from noetl.domain.playbook.needs import ANY
from noetl.domain.work import FrameWork, StageServed, WorkerIdentity
from noetl.kernel.ids import ExecutionId, StageId, StepName, WorkerId
from noetl.kernel.instant import Instant
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.runtime.placing import place_in, source_of, told_of
from noetl.runtime.seats import Need, Seats
from noetl.testing.desk_words import worker
from tests.unit.runtime.desk_scene import Scene

NOW = Instant("2026-01-01T00:00:00.000000Z")
SOURCE = Locality("eu", "eu-a", None, "n1")
NEED = Need(ANY, StageId("7"), source=SOURCE)
SAME_NODE, SAME_ZONE, SAME_REGION = (
    SOURCE,
    Locality("eu", "eu-a", None, "n2"),
    Locality("eu", "eu-b", None, "n3"),
)
ELSEWHERE = Locality("us", "us-a", None, "n4")
OVER_A_TABLE = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: table, path: placing/table}
workflow:
  - step: fetch
    tool: {kind: noop}
    next: each
  - step: each
    loop: {in: "{{ fetch.rows }}", iterator: row, spec: {mode: parallel, engine: local}}
    tool: {kind: noop}
"""


def at(
    name: str, place: Locality | None, slots: int = 1, distance_max: Distance = "any"
) -> WorkerIdentity:
    return WorkerIdentity(
        worker_id=WorkerId(name),
        boot_id="1",
        slots=slots,
        locality=place,
        distance_max=distance_max,
    )


def seated(*workers: WorkerIdentity) -> Seats:
    seats = Seats()
    for each in workers:
        seats.seat(each, NOW).free = each.slots
    return seats


def given(seats: Seats, need: Need = NEED) -> Iterator[str]:
    while (seat := seats.free(NOW, need)) is not None:
        seat.promise()
        yield seat.worker.worker_id


def test_those_near_get_it_and_those_far_away_when_nobody_near_is_free() -> None:
    far, near, region = at("far", ELSEWHERE), at("near", SAME_ZONE, 2), at("region", SAME_REGION)
    seats = seated(far, region, at("silent", None), near)
    assert [*given(seats)] == ["near", "near", "region", "far", "silent"]


@pytest.mark.parametrize(
    ("preference", "order"),
    [
        ("node", ["node", "zone", "region", "far"]),
        ("zone", ["zone", "node", "region", "far"]),
        ("region", ["region", "zone", "node", "far"]),
        ("any", ["far", "region", "zone", "node"]),
    ],
)
def test_what_is_nearer_than_preferred_takes_turns(
    preference: Preference, order: list[str]
) -> None:
    places = {"far": ELSEWHERE, "region": SAME_REGION, "zone": SAME_ZONE, "node": SAME_NODE}
    seats = seated(*(at(name, place) for name, place in places.items()))
    seats.preference = preference
    assert [*given(seats)] == order


def test_a_worker_takes_nothing_from_farther_away_than_it_says() -> None:
    picky = at("picky", SAME_REGION, distance_max="zone")
    seats = seated(picky)
    assert [*given(seats)] == []
    seats.starving[ExecutionId("1")] = frozenset({NEED})
    assert seats.hungry(NOW) is None
    assert [*given(seats, Need(ANY))] == ["picky"], "of this nobody knows where it is"


def test_only_results_of_the_execution_itself_are_known_to_be_somewhere() -> None:
    places = {StepName("fetch"): SOURCE}
    own, other = ExecutionId("1"), ExecutionId("2")

    def named(uri: str) -> ResultReference:
        return ResultReference(type="object_store", uri=uri)

    result = named("noetl://default/default/results/1/fetch/0/0/1@1")
    assert source_of(result, own, places) == SOURCE
    assert source_of(result, other, places) is None
    assert source_of(result, own, {}) is None
    assert source_of(named("noetl://default/default/results/1/fetch@1"), own, places) is None
    assert source_of(named("noetl://default/default/payloads/sha256/aa"), own, places) is None


def test_who_says_nothing_of_its_place_leaves_nothing_behind() -> None:
    assert told_of(DEFAULT_SCOPE, at("w", None)) == ({}, {})
    told = told_of(DEFAULT_SCOPE, at("w", None), SOURCE)
    assert told.meta["placement"]["distance"] == "any"
    assert place_in(told_of(DEFAULT_SCOPE, at("w", SAME_ZONE)).annotations) == SAME_ZONE


@pytest.mark.parametrize("told", [{}, {"locality": "eu"}, {"locality": {"zone": 7, "moon": "x"}}])
def test_places_that_cannot_be_read_are_none(told: dict[str, object]) -> None:
    assert place_in(told) is None


async def test_a_loop_goes_to_where_its_rows_were_made() -> None:
    scene = Scene()
    execution = await scene.start(OVER_A_TABLE)
    maker, far = at("maker", SAME_NODE, 2), at("far", ELSEWHERE, 2)
    fetch = await scene.claim_one(maker)
    await scene.claim(2, far)
    rows = ResultReference(
        type="object_store",
        uri=f"noetl://default/default/results/{execution}/fetch/0/0/1@1",
    )
    running = await scene.coordinator.load(execution)
    assert running.places == {fetch.step: SAME_NODE}
    scene.rebuild()
    running = await scene.coordinator.load(execution)
    assert source_of(rows, execution, running.places) == SAME_NODE, "the log knows it"
    (claimed,) = [
        event
        for event in await scene.events(execution)
        if event.envelope.event_type == "command.claimed"
    ]
    assert place_in(claimed.annotations) == SAME_NODE


async def test_frames_of_workers_without_a_place_say_nothing_of_places() -> None:
    scene = Scene()
    text = OVER_A_TABLE.replace("{{ fetch.rows }}", "{{ [1, 2] }}")
    execution = await scene.start(text)
    plain = worker("plain")
    while works := await scene.claim(1, plain):
        for work in works:
            if isinstance(work, FrameWork):
                break
            await scene.finish(work, {}, plain)
        else:
            continue
        break
    (given_out,) = [
        event
        for event in await scene.events(execution)
        if event.envelope.event_type == "frame.dispatched"
    ]
    assert (given_out.envelope.meta, given_out.annotations) == ({}, {})
    assert msgspec.to_builtins(given_out.event)["cursor"]["first"] == 0


async def test_a_frame_says_which_slot_of_its_engine_has_it() -> None:
    scene = Scene()
    text = OVER_A_TABLE.replace("{{ fetch.rows }}", "{{ [1, 2] }}")
    execution = await scene.start(text.replace("local", "local, frame: {max_rows: 1}"))
    await scene.finish(await scene.claim_one(), {})
    (stage,) = (await scene.coordinator.load(execution)).state.stages
    slot = WorkerIdentity(
        worker_id=WorkerId(f"spark/{stage}/3"),
        boot_id="1",
        slots=1,
        serves=StageServed(execution_id=execution, stage_id=stage, slot=3),
    )
    work = await scene.claim_one(slot)
    (other, dispatched) = await scene.of(execution, "frame.dispatched")
    assert other.slot is None
    assert (dispatched.worker_id, dispatched.slot) == (slot.worker_id, 3)
    assert isinstance(work, FrameWork)
