"""The ledger: effects that fired, that ran again, and that nobody can be sure of."""

from noetl.domain.events import CallFailed, CommandCancelled, CommandFailed, FrameFailed
from noetl.domain.events.values import Failure
from noetl.kernel.ids import CommandId
from noetl.runtime.effect_entries import EffectEntry
from noetl.runtime.effects import Ledger
from noetl.testing.given import Placed, Story, at, given
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    COMMAND,
    FAILURE,
    STARTED,
    STEP,
    abandoned,
    called,
    claimed,
    committed,
    completed,
    dispatched,
    failed,
    frame_started,
    in_frame,
    issued,
    loop_started,
    stage_opened,
    started,
)

FIRED = {"task": "pay", "effect": "fired"}


def entries(story: Story) -> list[EffectEntry]:
    ledger = Ledger()
    for event in story.events:
        ledger.add(event)
    return ledger.entries()


def states(story: Story) -> list[tuple[str | None, str]]:
    return [(entry.task, entry.state) for entry in entries(story)]


def call_failed(kind: str, effect: str | None = None) -> Placed:
    error = Failure(kind=kind, message="perhaps")
    event = CallFailed(step=STEP, error=error, task="pay", effect=effect)
    return at(event, command_id=COMMAND)


def test_a_recorded_effect_is_an_entry_with_its_cycle() -> None:
    story = given(STARTED, issued(), claimed(), started(), called(run=2, **FIRED), completed())

    (entry,) = entries(story)

    assert entry.cycle == f"{story.execution}/load/1/0/pay/2"
    assert (entry.step, entry.task, entry.run) == ("load", "pay", 2)
    assert (entry.state, entry.adopted) == ("fired", False)
    assert (entry.event_id, entry.time) == (
        story.event_id(5),
        story.events[4].envelope.event_time,
    )


def test_calls_that_change_nothing_are_not_in_the_ledger() -> None:
    assert entries(given(STARTED, issued(), claimed(), called(task="look"), completed())) == []


def test_a_call_that_failed_after_it_fired_is_in_the_ledger() -> None:
    story = given(STARTED, issued(), claimed(), call_failed("timeout", "fired"), failed())
    assert states(story) == [("pay", "fired")]


def test_what_a_later_holder_did_not_fire_again_is_adopted() -> None:
    story = given(STARTED, issued(), claimed(), called(**FIRED), claimed(BERT, 2))
    story.when(called(task="tell", effect="repeated"), completed(2))

    assert states(story) == [("pay", "fired"), ("tell", "repeated")]
    assert [entry.adopted for entry in entries(story)] == [True, False]


def test_after_a_takeover_the_next_effect_is_in_doubt() -> None:
    story = given(STARTED, issued(), claimed(), started(), called(**FIRED), claimed(BERT, 2))

    assert states(story) == [("pay", "fired"), (None, "in_doubt")]
    assert entries(story)[1].cycle == f"{story.execution}/load/1/0"


def test_a_doubt_stays_when_the_command_fails() -> None:
    story = given(STARTED, issued(), claimed(), claimed(BERT, 2), failed(2))
    assert states(story) == [(None, "in_doubt")]


def test_a_doubt_is_over_when_the_command_completes_without_the_effect() -> None:
    assert entries(given(STARTED, issued(), claimed(), claimed(BERT, 2), completed(2))) == []


def test_a_first_holder_leaves_no_doubt() -> None:
    assert entries(given(STARTED, issued(), claimed(), started(), failed())) == []


def test_an_effect_that_was_refused_because_of_doubt_is_named() -> None:
    story = given(STARTED, issued(), claimed(), claimed(BERT, 2))
    story.when(call_failed("effect_in_doubt"), failed(2))

    assert states(story) == [("pay", "in_doubt")]


def test_a_person_s_retry_leaves_the_doubt_about_what_was_lost() -> None:
    again = CommandId("c2")
    story = given(STARTED, issued(), claimed(), claimed(BERT, 2), failed(2))
    story.when(issued(again, attempt=2))

    assert states(story) == [(None, "in_doubt")]


def test_every_holder_that_was_lost_may_have_fired_what_runs_again() -> None:
    story = given(STARTED, issued(), claimed(), claimed(BERT, 2), claimed(ANNA, 3))
    story.when(called(task="pay", effect="repeated"), called(task="tell", effect="fired"))

    assert [(entry.task, entry.doubts) for entry in entries(story)] == [("pay", 2), ("tell", 0)]


def test_a_frame_s_repeated_effects_have_the_doubts_of_the_frame() -> None:
    cycle = "7/load/1/3/pay/1"
    metrics = {"effects": {"fired": 2, "repeated": 1}, "repeated": [cycle]}
    story = given(STARTED, loop_started(), stage_opened(), dispatched())
    for attempt in (2, 3):
        story.when(abandoned(ANNA), dispatched(BERT, attempt=attempt))
    story.when(committed(BERT, metrics=metrics))

    assert [(entry.state, entry.doubts) for entry in entries(story)] == [
        ("fired", 0),
        ("repeated", 2),
    ]


def test_a_person_s_retry_adopts_what_had_succeeded() -> None:
    story = given(STARTED, issued(), claimed(), called(**FIRED), call_failed("http", "fired"))
    story.when(failed(), issued(CommandId("c2"), attempt=2))

    assert [(entry.state, entry.adopted) for entry in entries(story)] == [
        ("fired", True),
        ("fired", False),
    ]


def test_a_frame_tells_how_many_fired_and_names_what_ran_again() -> None:
    cycle = "7/load/1/3/pay/1"
    metrics = {"effects": {"fired": 5, "adopted": 2, "repeated": 1}, "repeated": [cycle]}
    story = given(STARTED, loop_started(), stage_opened())
    story.when(dispatched(cursor={"first": 100, "rows": 50}), committed(metrics=metrics))

    fired, adopted, repeated = entries(story)

    assert (fired.state, fired.count, fired.task) == ("fired", 4, None)
    assert fired.cycle == f"{story.execution}/load/1/100"
    assert (adopted.state, adopted.adopted, adopted.count) == ("fired", True, 2)
    assert (repeated.cycle, repeated.task, repeated.run) == (cycle, "pay", 1)
    assert repeated.state == "repeated"


def test_a_frame_that_changed_hands_is_in_doubt_until_it_commits() -> None:
    story = given(STARTED, loop_started(), stage_opened(), dispatched())
    story.when(abandoned(ANNA), dispatched(BERT, attempt=2))
    assert states(story) == [(None, "in_doubt")]

    story.when(committed(BERT, metrics={"effects": {"fired": 0}}))
    assert entries(story) == []


def test_a_frame_that_failed_after_changing_hands_stays_in_doubt() -> None:
    story = given(STARTED, loop_started(), stage_opened(), dispatched())
    story.when(abandoned(ANNA), dispatched(BERT, attempt=2), in_frame(FrameFailed(error=FAILURE)))
    assert states(story) == [(None, "in_doubt")]


def test_a_frame_names_the_first_of_many_and_the_rest_is_a_number() -> None:
    cycles = [f"7/load/1/{row}/pay/1" for row in range(6)]
    metrics = {
        "effects": {"fired": 9, "adopted": 70, "repeated": 4, "in_doubt": 1},
        "adopted": cycles[:2],
        "repeated": cycles[2:4],
        "in_doubt": cycles[4:5],
    }
    story = given(STARTED, loop_started(), stage_opened(), dispatched())
    story.when(committed(metrics=metrics))

    assert [(each.cycle, each.state, each.adopted, each.count) for each in entries(story)] == [
        (f"{story.execution}/load/1/0", "fired", False, 5),
        (cycles[0], "fired", True, 1),
        (cycles[1], "fired", True, 1),
        (f"{story.execution}/load/1/0", "fired", True, 68),
        (cycles[2], "repeated", False, 1),
        (cycles[3], "repeated", False, 1),
        (f"{story.execution}/load/1/0", "repeated", False, 2),
        (cycles[4], "in_doubt", False, 1),
    ]


def test_a_frame_that_failed_may_have_fired_something() -> None:
    story = given(STARTED, loop_started(), stage_opened(), dispatched())
    story.when(in_frame(FrameFailed(error=FAILURE)))
    assert states(story) == [(None, "in_doubt")]


def test_a_command_that_was_cancelled_in_somebodys_hands_may_have_fired_something() -> None:
    cancelled = at(CommandCancelled(), command_id=COMMAND)
    assert states(given(STARTED, issued(), claimed(), cancelled)) == [(None, "in_doubt")]
    assert states(given(STARTED, issued(), cancelled)) == []


def test_a_command_that_was_lost_too_often_may_have_fired_something() -> None:
    quiet = Failure(kind="lease_lost", message="one worker took it and went quiet")
    lost = at(CommandFailed(error=quiet, claim=1), command_id=COMMAND)
    assert states(given(STARTED, issued(), claimed(), lost)) == [(None, "in_doubt")]


def test_a_frame_of_a_cursor_goes_by_the_rows_that_it_has_claimed() -> None:
    """Whoever was lost before had no rows, and has fired nothing."""
    story = given(STARTED, loop_started(mode="cursor"), stage_opened(), dispatched())
    story.when(abandoned(ANNA), dispatched(BERT, attempt=2))
    begun = frame_started(BERT, transaction_id="t", rows=[1], cursor={"first": 8, "rows": 1})

    story.when(begun, committed(BERT, row_count=1, metrics={"effects": {"fired": 1}}))

    (entry,) = entries(story)
    assert (entry.state, entry.cycle.rpartition("/")[2]) == ("fired", "8")
