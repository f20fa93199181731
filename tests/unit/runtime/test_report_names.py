"""A report counts whatever the names in it are; what they are is told."""

import msgspec
import pytest

from noetl.domain.events.values import Result, ResultReference
from noetl.domain.work import Call, CommandReport, FrameReport
from noetl.kernel.ids import CommandId, ExecutionId, FrameId, StageId, WorkerId
from noetl.results.counts import ResultCounts
from noetl.runtime.report_names import count_called, count_reported
from noetl.testing.desk_words import ended
from tests.unit.runtime.desk_scene import WORKER, Scene

GOOD = "noetl://default/default/results/7012345678901234567/load/0/0/1@1"
EXECUTION = ExecutionId("7012345678901234567")

ONE_STEP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: one, path: tests/one}
workflow:
  - step: start
    tool: {kind: http, url: u}
"""


def result(uri: str) -> Result:
    return Result(status="ok", reference=ResultReference(type="object_store", uri=uri))


def command(*calls: Call, uri: str | None) -> CommandReport:
    return CommandReport(
        execution_id=EXECUTION,
        command_id=CommandId("c"),
        claim=1,
        worker_id=WorkerId("w"),
        calls=calls,
        result=None if uri is None else result(uri),
    )


def test_a_result_that_a_report_names_twice_counts_once() -> None:
    counts = ResultCounts()
    count_reported(counts, command(Call(task="t", result=result(GOOD)), uri=GOOD))
    assert counts.accepted == {"canonical": 1}


def test_results_inside_their_events_have_no_names() -> None:
    counts = ResultCounts()
    count_reported(counts, command(Call(task="t", result=Result(status="ok")), uri=None))
    assert counts.accepted == {}


@pytest.mark.parametrize("uri", ["", "noetl://x", "s3://bucket/key"])
def test_what_is_no_name_is_counted_and_refused_by_nobody(uri: str) -> None:
    counts = ResultCounts()
    count_reported(counts, command(uri=uri))
    count_called(counts, Call(task="t", result=result(uri)))
    frame = FrameReport(
        execution_id=EXECUTION,
        stage_id=StageId("s"),
        frame_id=FrameId("f"),
        attempt=1,
        worker_id=WorkerId("w"),
        output=ResultReference(type="object_store", uri=uri),
    )
    count_reported(counts, frame)
    assert counts.accepted == {"malformed": 3}


async def test_a_report_with_a_name_that_means_nothing_is_recorded_like_any_other() -> None:
    scene = Scene()
    execution = await scene.start(ONE_STEP)
    work = await scene.claim_one()
    await scene.report(msgspec.structs.replace(ended(work, WORKER), result=result("noetl://x")))
    await scene.coordinator.drain()

    assert await scene.status(execution) == "COMPLETED"
    (completed,) = await scene.of(execution, "command.completed")
    assert completed.result.reference.uri == "noetl://x"
    assert scene.results.counts.accepted == {"malformed": 1}
