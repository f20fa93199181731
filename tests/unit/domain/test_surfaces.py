"""Six checksums prove a state, and live rows prove the same state without a fold."""

from itertools import permutations

import msgspec
import pytest

from noetl.domain.events import Event, PlaybookCompleted, StepEntered
from noetl.domain.execution.rows import SURFACES, Surface
from noetl.domain.execution.state import ExecutionState
from noetl.domain.surfaces import (
    Row,
    checksum_bundle,
    live_checksum_bundle,
    open_rows,
    parity,
    state_checksum,
)
from noetl.kernel import canonical_json
from noetl.kernel.ids import CommandId, FrameId
from noetl.testing.given import Placed, Story, at, given
from tests.unit.domain.happenings import (
    STARTED,
    STEP,
    committed,
    completed,
    dispatched,
    issued,
    loop_started,
    order,
    stage_opened,
)


def busy_story() -> Story:
    """Something open and something finished on every surface that can have both."""
    return given(
        STARTED,
        loop_started(collection_size=100),
        stage_opened(),
        dispatched(),
        dispatched(frame=FrameId("f2")),
        dispatched(frame=FrameId("a")),
        committed(),
        issued(),
        issued(CommandId("c2")),
        issued(CommandId("a")),
        issued(CommandId("b")),
        at(completed().event, command_id="c2"),
        completed(),
        order(status="new"),
        order(deleted=True),
        order(status="again", attributes={"é": [1.5, None]}),
    )


def live_rows(story: Story) -> dict[Surface, list[Row]]:
    return {
        surface: [*open_rows(story.state, surface), *story.finished[surface]]
        for surface in SURFACES
    }


def test_a_bundle_has_exactly_six_surfaces() -> None:
    bundle = checksum_bundle(ExecutionState())
    assert tuple(bundle) == SURFACES
    assert set(SURFACES) == {
        "execution", "stages", "frames", "commands", "business_objects", "loops",
    }  # fmt: skip
    assert all(len(checksum) == 64 for checksum in bundle.values())


def test_live_rows_in_any_order_give_the_replayed_checksums() -> None:
    story = busy_story()
    rows = live_rows(story)
    for surface in SURFACES:
        for order_of_rows in permutations(rows[surface]):
            live = live_checksum_bundle({**rows, surface: list(order_of_rows)})
            assert live == checksum_bundle(story.state)


def test_live_rows_that_went_through_json_give_them_too() -> None:
    story = busy_story()
    rows: dict[Surface, list[Row]] = msgspec.json.decode(canonical_json.encode(live_rows(story)))
    assert live_checksum_bundle(rows) == checksum_bundle(story.state)


@pytest.mark.parametrize("surface", SURFACES)
def test_a_row_too_few_or_too_many_or_altered_is_noticed_on_its_surface(surface: Surface) -> None:
    story = busy_story()
    rows = live_rows(story)
    first, *others = rows[surface]
    wrong = [others, [first, *others, first], [{**first, "status": "?"}, *others]]
    for altered in wrong:
        live = live_checksum_bundle({**rows, surface: altered})
        assert parity(checksum_bundle(story.state), live).differing == (surface,)


def test_an_open_row_is_not_mistaken_for_a_finished_one() -> None:
    story = given(issued())
    (row,) = open_rows(story.state, "commands")
    as_finished = {**row, "terminal_version": 1}
    rows = live_rows(story) | {"commands": [as_finished]}
    live = live_checksum_bundle(rows)
    assert parity(checksum_bundle(story.state), live).differing == ("commands",)


def test_finished_rows_count_in_the_order_of_their_end() -> None:
    other = CommandId("c2")
    ends = [completed(), at(completed().event, command_id=other)]
    one = given(issued(), issued(other), *ends)
    swapped = given(issued(), issued(other), *reversed(ends))
    assert checksum_bundle(one.state)["commands"] != checksum_bundle(swapped.state)["commands"]


def test_open_rows_come_in_the_order_of_their_ids() -> None:
    story = busy_story()
    assert [row["frame_id"] for row in open_rows(story.state, "frames")] == ["a", "f2"]
    assert [row["command_id"] for row in open_rows(story.state, "commands")] == ["a", "b"]


def test_an_execution_without_events_has_no_rows() -> None:
    assert open_rows(ExecutionState(), "execution") == []
    assert checksum_bundle(ExecutionState()) == live_checksum_bundle({})


@pytest.mark.parametrize(
    "more",
    [StepEntered(step=STEP), PlaybookCompleted(), issued(), order()],
    ids=["a step", "the end", "a command", "an object"],
)
def test_one_more_event_is_another_state(more: Event | Placed) -> None:
    story = given(STARTED)
    before = state_checksum(story.state)
    story.when(more)
    assert state_checksum(story.state) != before


def test_the_checksum_of_a_state_is_that_of_its_bundle_and_its_place() -> None:
    story = busy_story()
    assert state_checksum(story.state) == canonical_json.checksum(
        {
            "event_count": 16,
            "last_event_id": story.event_id(16),
            "projection_checksums": checksum_bundle(story.state),
            "stream_version": 16,
        }
    )


def test_equal_bundles_match() -> None:
    bundle = checksum_bundle(busy_story().state)
    report = parity(bundle, dict(reversed(bundle.items())))
    assert report.matches
    assert (report.differing, report.missing, report.unknown) == ((), (), ())


def test_parity_names_what_differs_what_is_missing_and_what_is_unknown() -> None:
    replayed: dict[str, str] = {surface: "aa" for surface in SURFACES}
    live = {**replayed, "frames": "bb", "loops": "cc", "moons": "dd"}
    del live["commands"], replayed["stages"]

    report = parity(replayed, live)

    assert not report.matches
    assert report.differing == ("frames", "loops")
    assert report.missing == ("stages", "commands")
    assert report.unknown == ("moons",)


@pytest.mark.parametrize("surface", SURFACES)
def test_any_one_difference_is_enough_not_to_match(surface: Surface) -> None:
    bundle: dict[str, str] = {each: "aa" for each in SURFACES}
    without = {name: checksum for name, checksum in bundle.items() if name != surface}
    assert not parity(bundle, bundle | {surface: "bb"}).matches
    assert not parity(bundle, without).matches
    assert not parity(bundle | {"moons": "aa"}, bundle).matches
