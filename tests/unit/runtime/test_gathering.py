"""Values that are too large for events lie in the payload store, whole and in order."""

import msgspec
import pytest

from noetl.domain.events.values import Failure, ResultReference
from noetl.domain.naming.result_name import DatasetName, ResultName
from noetl.domain.work import FrameReport, FrameWork, RowOutcome
from noetl.kernel.scope import DEFAULT_SCOPE
from noetl.results.dataset import DatasetManifest, content_of_outcomes, frame_content
from noetl.runtime.frames_report import output_name
from noetl.testing.desk_words import ended
from tests.unit.runtime.desk_scene import WORKER, Scene

LOOP = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: gather, path: gathering/loop}
workload: {count: 6, width: 1}
workflow:
  - step: make
    tool: {kind: noop}
    next: each
  - step: each
    loop:
      in: "{{ make }}"
      iterator: item
      spec: {mode: parallel, max_in_flight: 100, frame: {max_rows: 2, row_concurrency: 1}}
    tool: {kind: noop}
    next:
      arcs:
        - step: found
          when: "{{ each.results[-1] == each.results | length - 1 }}"
        - step: missed
  - step: found
    tool: {kind: noop}
  - step: missed
    tool: {kind: noop}
"""


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def stored(scene: Scene, work: FrameWork) -> FrameReport:
    """The report of a frame whose output lies in the store."""
    rows = [
        RowOutcome(index=index, status="ok", value=index)
        for index in range(work.first_index, work.first_index + work.row_count)
    ]
    content = frame_content(msgspec.to_builtins(rows))
    reference = await scene.results.stage_rows(output_name(work), content)
    report = ended(work, WORKER)
    assert isinstance(report, FrameReport)
    return msgspec.structs.replace(report, output=reference, outcomes=tuple(rows[:1]))


async def test_items_that_outgrow_an_event_are_stored_and_named(scene: Scene) -> None:
    items = [{"name": "x" * 1_000, "number": number} for number in range(100)]
    execution = await scene.start(LOOP)
    await scene.finish(await scene.claim_one(), items)

    (started,) = await scene.of(execution, "loop.started")
    works = await scene.claim()

    assert (started.collection, started.collection_size) == (None, 100)
    assert await scene.results.content(DEFAULT_SCOPE, started.collection_ref.uri) == items
    assert all(isinstance(work, FrameWork) and work.rows is None for work in works)


async def test_results_of_stored_frames_are_put_together_in_order_and_seen_by_guards(
    scene: Scene,
) -> None:
    execution = await scene.start(LOOP)
    await scene.finish(await scene.claim_one(), list(range(6)))
    works = await scene.claim()
    for work in reversed(works):
        assert isinstance(work, FrameWork)
        await scene.report(await stored(scene, work))
    await scene.coordinator.drain()  # the dataset is made when all that it lists is durable

    (done,) = await scene.of(execution, "loop.done")
    whole = await scene.results.content(DEFAULT_SCOPE, done.result.reference.uri)

    assert whole["loop"]["results"] == list(range(6))
    assert whole["loop"]["stats"]["succeeded"] == whole["loop"]["count"] == 6
    assert [work.step for work in await scene.claim()] == ["found"]


async def test_a_dataset_lists_only_what_is_durable(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever comes after a crash has other frames to list, under a name that is taken."""
    durable: list[int] = []
    stage = scene.results.stage_dataset

    async def staged(name: DatasetName | ResultName, manifest: DatasetManifest) -> ResultReference:
        durable.append(len(await scene.of(execution, "frame.committed")))
        return await stage(name, manifest)

    monkeypatch.setattr(scene.results, "stage_dataset", staged)
    execution = await scene.start(LOOP)
    await scene.finish(await scene.claim_one(), list(range(6)))
    for work in await scene.claim():
        assert isinstance(work, FrameWork)
        await scene.report(await stored(scene, work))
    await scene.coordinator.drain()

    assert durable == [3]
    assert len(await scene.of(execution, "loop.done")) == 1


async def test_a_frame_that_cannot_be_read_fails_the_execution_in_words(scene: Scene) -> None:
    execution = await scene.start(LOOP)
    await scene.finish(await scene.claim_one(), [1, 2])
    (work,) = await scene.claim()
    assert isinstance(work, FrameWork)
    report = await stored(scene, work)
    (frame,) = await scene.results.objects.list_objects("noetl/")
    await scene.results.objects.delete(frame.key)

    await scene.report(report)
    await scene.coordinator.drain()

    ending = await scene.coordinator.ending(execution, 0)
    assert ending is not None
    assert ending.error is not None
    assert (ending.status, ending.error.kind) == ("FAILED", "missing_reference")


def test_outcomes_at_hand_are_the_rows_that_their_plain_form_is() -> None:
    failure = Failure(kind="timeout", message="too slow", retryable=True, detail={"http": {"a": 1}})
    rows = [
        RowOutcome(index=0, status="ok", value={"a": [1, None]}, writes={"x": 1}),
        RowOutcome(index=1, status="break"),
        RowOutcome(index=2, status="failed", value={}, error=failure),
    ]
    assert content_of_outcomes(rows) == frame_content(msgspec.to_builtins(rows))
