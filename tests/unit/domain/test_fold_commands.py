"""What facts about commands make true: leases, takeovers, fencing, one end."""

from noetl.domain.events import (
    CallFailed,
    CallPartial,
    CommandCancelled,
    CommandClaimed,
    CommandReleased,
)
from noetl.domain.events.values import Result
from noetl.kernel.ids import CommandId, FrameId, StageId
from noetl.testing.given import at, given
from tests.unit.domain.happenings import (
    ANNA,
    BERT,
    COMMAND,
    FAILURE,
    LATER,
    SOON,
    STEP,
    called,
    claimed,
    completed,
    failed,
    heartbeat,
    issued,
    started,
    stored_result,
    summary,
)


def test_an_issued_command_waits_and_knows_its_coordinates() -> None:
    event = issued(
        visit=2,
        iteration=5,
        attempt=2,
        attempts_max=3,
        parent_command_id=CommandId("c0"),
        placement="zone-a",
    ).event
    story = given(at(event, command_id=COMMAND, stage_id=StageId("s1"), frame_id=FrameId("f1")))
    story.then(
        "commands",
        COMMAND,
        status="PENDING",
        step=STEP,
        tool="http",
        visit=2,
        iteration=5,
        attempt=2,
        attempts_max=3,
        parent_command_id="c0",
        placement="zone-a",
        stage_id="s1",
        frame_id="f1",
        issued_event_id=story.event_id(1),
        claim=0,
        worker_id=None,
    )


def test_a_command_is_claimed_started_kept_alive_and_completed() -> None:
    story = given(issued())
    story.when(claimed(ANNA, 1, SOON)).then(
        "commands", COMMAND, status="CLAIMED", worker_id=ANNA, claim=1, lease_until=SOON
    )
    story.when(started()).then("commands", COMMAND, status="RUNNING", lease_until=SOON)
    story.when(heartbeat(until=LATER)).then("commands", COMMAND, lease_until=LATER)
    story.when(completed(result=stored_result("rows")))

    story.then(
        "commands",
        COMMAND,
        status="COMPLETED",
        result_status="ok",
        result_ref=summary("rows"),
        issued_event_id=story.event_id(1),
        claimed_event_id=story.event_id(2),
        started_event_id=story.event_id(3),
        terminal_event_id=story.event_id(5),
        terminal_version=5,
        error_kind=None,
    )
    assert story.state.commands == {}
    story.then("execution", unmatched_events=0)


def test_a_failed_command_says_what_kind_of_failure() -> None:
    given(issued(), claimed()).when(failed()).then(
        "commands", COMMAND, status="FAILED", error_kind="timeout", result_ref=None
    )


def test_a_command_can_be_cancelled_before_anyone_claims_it() -> None:
    given(issued()).when(at(CommandCancelled(), command_id=COMMAND)).then(
        "commands", COMMAND, status="CANCELLED", worker_id=None, terminal_version=2
    )


def test_a_higher_claim_takes_the_command_over() -> None:
    story = given(issued(), claimed(ANNA, 1, SOON), started(ANNA, 1))

    story.when(claimed(BERT, 2, LATER))

    story.then(
        "commands",
        COMMAND,
        status="CLAIMED",
        worker_id=BERT,
        claim=2,
        lease_until=LATER,
        claimed_event_id=story.event_id(4),
        started_event_id=None,
    )
    story.then("execution", unmatched_events=0)


def test_a_fenced_worker_changes_nothing_any_more() -> None:
    story = given(issued(), claimed(ANNA, 1), claimed(BERT, 2, SOON), started(BERT, 2))
    before = story.row("commands", COMMAND)

    story.when(heartbeat(ANNA, 1, LATER), started(ANNA, 1), claimed(ANNA, 1, LATER))

    assert story.row("commands", COMMAND) == before
    story.then("execution", unmatched_events=3)


def test_the_same_claim_twice_is_one_claim() -> None:
    story = given(issued(), claimed(ANNA, 1, SOON)).when(claimed(BERT, 1, LATER))
    story.then("commands", COMMAND, worker_id=ANNA, lease_until=SOON)


def test_a_takeover_remembers_the_new_incarnation_and_place() -> None:
    moved = CommandClaimed(
        worker_id=BERT, claim=2, lease_until=LATER, boot_id="boot-2", placement="zone-b"
    )
    story = given(issued(placement="zone-a"), claimed(ANNA, 1))
    story.then("commands", COMMAND, placement="zone-a", boot_id=None)
    story.when(at(moved, command_id=COMMAND)).then(
        "commands", COMMAND, placement="zone-b", boot_id="boot-2"
    )


def test_the_first_end_of_a_command_counts() -> None:
    story = given(issued(), claimed(), completed())
    story.when(failed(), completed(), heartbeat(), at(CommandCancelled(), command_id=COMMAND))
    story.then("commands", COMMAND, status="COMPLETED", terminal_version=3)
    story.then("execution", unmatched_events=4)
    assert len(story.finished["commands"]) == 1


def test_a_command_that_nobody_issued_is_only_counted() -> None:
    story = given(claimed(), started(), heartbeat(), completed(), failed())
    story.then("execution", unmatched_events=5)
    assert story.state.commands == {}
    assert story.finished["commands"] == []


def test_calls_are_counted_on_the_command_they_belong_to() -> None:
    partial = CallPartial(step=STEP, chunk_index=0, has_more=True, result=stored_result("chunk"))
    story = given(issued()).when(
        called(),
        at(CallFailed(step=STEP, error=FAILURE), command_id=COMMAND),
        at(partial, command_id=COMMAND),
    )
    story.then("commands", COMMAND, calls=3, status="PENDING")
    assert story.state.execution.payload_refs.count == 1


def test_a_call_outside_any_command_belongs_to_the_step_alone() -> None:
    story = given(issued()).when(called().event)
    story.then("commands", COMMAND, calls=0).then("execution", unmatched_events=0)


def test_commands_do_not_touch_each_other() -> None:
    other = CommandId("c2")
    story = given(issued(), issued(other)).when(claimed(), completed())
    story.then("commands", COMMAND, status="COMPLETED")
    story.then("commands", other, status="PENDING")


def test_a_result_without_a_reference_leaves_no_payload() -> None:
    story = given(issued()).when(completed(result=Result(status="skipped")))
    story.then("commands", COMMAND, result_status="skipped", result_ref=None)
    assert story.state.execution.payload_refs.count == 0


def test_the_payloads_of_results_are_chained_in_order() -> None:
    one = given(issued()).when(completed(result=stored_result("a")))
    other = given(issued()).when(completed(result=stored_result("b")))
    assert one.state.execution.payload_refs.count == 1
    assert one.state.execution.payload_refs.digest != other.state.execution.payload_refs.digest


def test_a_command_that_was_handed_back_waits_and_was_not_lost() -> None:
    released = at(CommandReleased(worker_id=ANNA, claim=1), command_id=COMMAND)
    story = given(issued(), claimed(ANNA, 1), started(ANNA, 1), released)
    story.then("commands", COMMAND, status="PENDING", claim=1, worker_id=None, lease_until=None)
    assert story.state.handed_back == {COMMAND: 1}
    story.when(claimed(BERT, 2), released).then("commands", COMMAND, worker_id=BERT)
    story.then("execution", unmatched_events=1)
    story.when(completed(2))
    assert story.state.handed_back == {}
