"""An append has a size: what does not fit follows in the next one, and nothing gets lost."""

import asyncio
from collections import Counter

import msgspec
import pytest

from noetl.domain.events import BusinessObjectChanged
from noetl.domain.log import APPEND_EVENTS_MAX
from noetl.kernel.errors import EventInvalid
from noetl.testing.desk_words import CHAIN, ROWS, count, ended, said_to, types, worker
from tests.unit.runtime.desk_scene import WORKER, Scene
from tests.unit.runtime.obedient_log import ObedientLog


@pytest.fixture
def log() -> ObedientLog:
    return ObedientLog()


@pytest.fixture
def scene(log: ObedientLog) -> Scene:
    return Scene(log)


LOOPING = 'loop: {in: "{{ [1] }}", iterator: item}, tool: {kind: noop}, '


def wide(steps: int, each: str = "") -> str:
    """One step, then many side by side, then one again."""
    names = [f"s{number}" for number in range(steps)]
    arcs = ", ".join(f"{{step: {name}}}" for name in names)
    branches = "\n".join(f"  - {{step: {name}, {each}next: last}}" for name in names)
    return f"""
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{name: wide, path: coordinator/wide}}
workflow:
  - step: first
    tool: {{kind: noop}}
    next: {{spec: {{mode: inclusive}}, arcs: [{arcs}]}}
{branches}
  - {{step: last, tool: {{kind: noop}}}}
"""


@pytest.mark.parametrize("steps", [99, 450, 1_200])
async def test_more_than_fits_into_one_append_follows_in_others(
    scene: Scene, log: ObedientLog, steps: int
) -> None:
    execution = await scene.start(wide(steps))

    assert await scene.run_to_the_end(execution) == "COMPLETED"

    sizes = [len(append) for append in log.appends]
    assert max(sizes) <= APPEND_EVENTS_MAX
    assert count(await scene.events(execution), "step.enter") == steps + 2


@pytest.mark.parametrize("loops", [301, 302], ids=["odd", "even"])
async def test_a_loop_and_its_stage_begin_and_end_in_one_append(
    scene: Scene, log: ObedientLog, loops: int
) -> None:
    """Hundreds of loops side by side: a cut between the two would leave a loop without a stage."""
    execution = await scene.start(wide(loops, LOOPING))
    hands = worker(slots=1_000)

    assert await scene.run_to_the_end(execution, hands) == "COMPLETED"

    assert max(map(len, log.appends)) <= APPEND_EVENTS_MAX
    for append in log.appends:
        assert append.count("loop.started") == append.count("stage.opened")
        assert append.count("loop.done") == append.count("stage.closed")


async def test_hundreds_of_frames_are_handed_out_append_by_append(
    scene: Scene, log: ObedientLog
) -> None:
    execution = await scene.start(ROWS.replace("100,", "700,"), count=700)
    hands = worker(slots=1_000)
    works = await scene.claim(1_000, hands)
    works += await scene.claim(300, hands)

    assert len(works) == 700
    await asyncio.gather(*(scene.report(ended(work, hands)) for work in works))
    assert await scene.run_to_the_end(execution, hands) == "COMPLETED"

    assert max(map(len, log.appends)) <= APPEND_EVENTS_MAX
    assert count(await scene.events(execution), "loop.done") == 1


async def test_reports_that_do_not_fit_together_are_all_recorded(
    scene: Scene, log: ObedientLog
) -> None:
    execution = await scene.start(ROWS, count=90)
    emitted = tuple(BusinessObjectChanged(object="order", id=str(n)) for n in range(20))
    works = await scene.claim()

    await asyncio.gather(
        *(
            scene.report(msgspec.structs.replace(ended(work, WORKER), emitted=emitted))
            for work in works
        )
    )

    assert max(map(len, log.appends)) <= APPEND_EVENTS_MAX
    tally = Counter(types(await scene.events(execution)))
    assert (tally["frame.committed"], tally["object.changed"]) == (90, 90 * 20)


async def test_a_report_that_fits_into_no_append_is_refused_in_words(scene: Scene) -> None:
    execution = await scene.start(CHAIN)
    work = await scene.claim_one()
    before = await scene.events(execution)
    changes = tuple(BusinessObjectChanged(object="order", id=str(n)) for n in range(600))

    with pytest.raises(EventInvalid, match=r"602 events at once are too many.* a loop"):
        await scene.report(msgspec.structs.replace(ended(work, WORKER), emitted=changes))

    assert await scene.events(execution) == before
    assert await said_to(scene.report(ended(work, WORKER))) == "recorded"
