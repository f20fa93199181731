"""What a person's retry begins again."""

from noetl.decider import requests
from noetl.testing.story import Story
from tests.unit.decider.test_routing import JOIN, story

TWO_FAILURES = """
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: right}]}
  - {step: left, tool: {kind: noop}, next: meet}
  - {step: right, tool: {kind: noop}, next: meet}
  - {step: meet, tool: {kind: noop}}
"""


def test_a_retry_takes_up_every_branch_that_failed() -> None:
    told: Story = story(TWO_FAILURES)
    told.fail("left")
    told.fail("right")
    assert told.status == "FAILED"

    told.tell(*requests.retry(told.state, told.plan.playbook, None, None))

    assert sorted(told.open) == ["left", "right"]
    told.complete("left")
    told.complete("right")
    told.complete("meet")
    assert told.status == "COMPLETED"


def test_a_retry_takes_up_every_branch_that_was_cancelled() -> None:
    told: Story = story(TWO_FAILURES)
    told.tell(*requests.cancel(told.state, "enough"))
    assert told.status == "CANCELLED"

    told.tell(*requests.retry(told.state, told.plan.playbook, None, None))

    assert sorted(told.open) == ["left", "right"]


def test_what_had_not_begun_begins_with_the_retry() -> None:
    told: Story = story(JOIN)
    told.complete("right")  # a token waits at the join
    told.tell(*requests.cancel(told.state, "enough"))
    told.tell(*requests.retry(told.state, told.plan.playbook, None, None))
    told.complete("left")
    told.complete("more")
    assert told.open == ["meet"]
    assert [each.arrived_from for each in told.of("step.enter") if each.step == "meet"] == [
        ("right", "more")
    ]
