"""An execution that goes round and round is ended, in words."""

import pytest

from noetl.testing.story import Story

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: story, path: tests/story}\n"


class ShortStory(Story):
    """One in which no step is entered more than three times."""

    visits_max = 3


@pytest.mark.parametrize("tool", ["tool: {kind: noop}, ", ""])
def test_a_step_that_is_entered_without_end_fails_the_execution_and_says_what_to_do(
    tool: str,
) -> None:
    told = ShortStory(f"{HEAD}workflow:\n  - {{step: start, {tool}next: start}}\n")
    while told.open:
        told.complete("start")
    assert told.status == "FAILED"
    (failed,) = told.of("playbook.failed")
    assert (failed.step, failed.error.code) == ("start", "endless")
    assert "entered 3 times" in failed.error.message
    assert "NOETL_VISITS_MAX" in failed.error.message
    assert [event.visit for event in told.of("step.enter")] == [1, 2, 3, 4]
