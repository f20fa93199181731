"""Whether a playbook will need Spark, known before it begins."""

import pytest

from noetl.decider.engines import will_want_spark
from noetl.decider.view import StageEngines
from noetl.dsl.check import check

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: story, path: tests/story}\n"
JOB = "workflow: [{step: a, tool: {kind: spark, sql: SELECT 1}}]"
SHORT = "workflow: [{step: a, loop: {in: [1], iterator: x}, tool: {kind: noop}}]"
FANOUT = SHORT.replace("iterator: x", "iterator: x, spec: {mode: fanout}")
JOBS = FANOUT.replace("kind: noop", "kind: spark, sql: SELECT 1")


@pytest.mark.parametrize(
    ("text", "engines", "wants"),
    [
        (JOB, "auto", True),
        (JOB, "local", True),  # where loops run says nothing of its own jobs
        (JOB, "none", False),
        (JOBS, "local", True),
        (SHORT, "auto", False),
        (FANOUT, "auto", True),
        (FANOUT, "local", False),
    ],
)
def test_it_is_started_early_for_those_that_are_sure_to_need_it(
    text: str, engines: StageEngines, wants: bool
) -> None:
    checked = check(HEAD + text)
    assert checked.playbook is not None
    assert will_want_spark(checked.playbook, engines) is wants
