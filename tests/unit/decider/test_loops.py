"""How loops begin, go out in frames, and end."""

import pytest

from noetl.decider.frames import frame_rows, next_window, row_concurrency
from noetl.domain.events.values import Failure
from noetl.domain.execution.state import Window
from noetl.domain.execution.windows import put_out
from noetl.kernel.ids import FrameId
from noetl.testing.story import Story

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: story, path: tests/story}\n"
LOOP = """
workload: {{items: [10, 20, 30]}}
workflow:
  - step: each
    loop: {{in: "{{{{ workload.items }}}}", iterator: item, spec: {{mode: {mode}{more}}}}}
    tool: {{kind: noop}}
    next: {{arcs: [{{step: after, when: "{{{{ event.name == 'loop.done' }}}}"}}]}}
  - {{step: after, tool: {{kind: noop}}}}
"""


def looping(mode: str, more: str = "", **payload: object) -> Story:
    return Story(HEAD + LOOP.format(mode=mode, more=more), **payload)


def test_a_loop_opens_a_stage_and_ends_with_its_results_in_order() -> None:
    told = looping("parallel")
    assert [told.of(name)[0].step for name in ("loop.started", "stage.opened")] == ["each", "each"]
    told.commit("each", ["a", "b", "c"])
    assert told.open == ["after"]
    (done,) = told.of("loop.done")
    assert done.status == "completed"
    loop = done.result.context["loop"]
    assert (loop["results"], loop["count"]) == (["a", "b", "c"], 3)
    assert loop["stats"]["succeeded"] == 3
    assert told.of("stage.closed")[0].status == "CLOSED"


REDUCING = """
workflow:
  - step: each
    loop: {{in: [], spec: {{mode: {mode}}}}}
    tool: {{kind: noop}}
    next: sum
  - step: sum
    loop: {{in: "{{{{ {given} }}}}", spec: {{mode: parallel, frame: {{process: {process}}}}}}}
    tool: {{kind: noop}}
"""


@pytest.mark.parametrize(
    ("mode", "given", "process", "kinds"),
    [
        ("fanout", "each.results", "frame", ["fanout", "reduce"]),
        ("parallel", "each.results", "frame", ["loop", "reduce"]),
        ("parallel", "each.results", "row", ["loop", "loop"]),
        ("parallel", "[each.count]", "frame", ["loop", "reduce"]),
        ("parallel", "[1, 2]", "frame", ["loop", "loop"]),
    ],
)
def test_a_loop_that_takes_the_rows_of_another_by_the_frame_is_a_reduce(
    mode: str, given: str, process: str, kinds: list[str]
) -> None:
    told = Story(HEAD + REDUCING.format(mode=mode, given=given, process=process))
    opened = told.of("stage.opened")
    assert [stage.stage_kind for stage in opened] == kinds
    assert {stage.dsl_ref for stage in opened} == {
        f"{told.plan.digest}#each",
        f"{told.plan.digest}#sum",
    }


def test_an_empty_collection_ends_at_once() -> None:
    told = looping("parallel", items=[])
    assert told.open == ["after"]
    assert told.of("loop.done")[0].stats.total == 0


def test_rows_that_did_not_start_go_out_again() -> None:
    told = looping("sequential")
    told.commit("each", ["a"])
    assert not told.of("loop.done")
    window = next_window(told.loop("each"))
    assert window is not None
    assert (window.first, window.rows) == (1, 2)
    told.commit("each", ["b", "c"])
    assert told.of("loop.done")[0].result.context["loop"]["results"] == ["a", "b", "c"]


def test_a_failed_row_fails_the_step_and_no_new_frame_starts() -> None:
    told = looping("sequential", ", frame: {max_rows: 1}")
    error = Failure(kind="timeout", message="slow")
    told.commit("each", [None], failed_rows=1, row_error=error)
    (done,) = told.of("loop.done")
    assert (done.status, done.error.kind) == ("failed", "timeout")
    assert done.stats.skipped == 2
    assert told.status == "FAILED"  # a loop that failed is not `loop.done` to its arcs


def test_writes_of_rows_side_by_side_are_applied_by_index_not_by_time() -> None:
    told = looping("parallel", ", max_in_flight: 2, frame: {max_rows: 2, row_concurrency: 1}")
    told.commit("each", ["a", "b"], writes={"last": "b"})
    assert "last" not in told.state.ctx
    told.commit("each", ["c"], writes={"last": "c"})
    assert told.state.ctx["last"] == "c"


def test_a_sequential_loop_applies_writes_as_frames_commit() -> None:
    told = looping("sequential", ", frame: {max_rows: 1}")
    told.commit("each", ["a"], writes={"seen": 1})
    assert told.state.ctx["seen"] == 1


def test_rows_in_flight_stay_within_the_bound() -> None:
    told = looping("parallel", ', max_in_flight: "{{ 4 + 3 }}"', items=list(range(100)))
    work = told.loop("each")
    assert work.policy["max_in_flight"] == 7
    assert row_concurrency(work) * 2 <= 7


def handed_out(told: Story) -> list[tuple[int, int]]:
    """The sizes of all frames and how many rows each has at once, two of them out at a time."""
    work, frames = told.loop("each"), list[tuple[int, int]]()
    while (window := next_window(work)) is not None:
        name = FrameId(f"f{len(frames)}")
        put_out(work, name, window, len(frames))
        frames.append((window.rows, row_concurrency(work)))
        if len(work.out) == 2:
            del work.out[next(iter(work.out))]
    return frames


def test_rows_that_are_one_frame_have_all_of_the_bound() -> None:
    told = looping("parallel", ", max_in_flight: 7", items=list(range(50)))
    assert handed_out(told) == [(50, 7)]


def test_few_rows_are_shared_by_the_frames_that_may_be_out() -> None:
    told = looping("parallel", ", max_in_flight: 8", items=list(range(60)))
    assert handed_out(told) == [(30, 4), (30, 4)]
    one_by_one = ", max_in_flight: 8, frame: {row_concurrency: 1}"
    assert next_window(looping("parallel", one_by_one, items=[0] * 20).loop("each")) == Window(0, 3)
    side_by_side = ", max_in_flight: 32, frame: {row_concurrency: 16}"
    told = looping("parallel", side_by_side, items=[0] * 16)
    assert next_window(told.loop("each")) == Window(0, 16)


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (101, [50, 26, 25]),
        (149, [50, 50, 49]),
        (1_000, [50] * 20),
        (1_010, [50] * 19 + [30, 30]),
        (10_001, [50] * 199 + [26, 25]),
    ],
)
def test_the_last_frames_share_what_is_left_and_are_no_more_for_that(
    rows: int, sizes: list[int]
) -> None:
    told = looping("parallel", ", max_in_flight: 8", items=[0] * rows)
    assert [size for size, _ in handed_out(told)] == sizes


def test_a_frame_that_is_alone_has_all_of_the_bound() -> None:
    told = looping("parallel", ", max_in_flight: 8", items=list(range(60)))
    work = told.loop("each")
    work.next_index, work.returned = 60, [Window(10, 20)]  # the rest was done before
    assert handed_out(told) == [(20, 8)]


def test_the_author_s_size_of_frames_stands() -> None:
    sized = ", max_in_flight: 8, frame: {max_rows: 50}"
    told = looping("parallel", sized, items=list(range(60)))
    assert handed_out(told) == [(50, 4), (10, 4)]


def test_frames_grow_with_what_the_last_one_took() -> None:
    told = looping("parallel", items=list(range(1_000)))
    assert frame_rows(told.loop("each")) == 50
    told.commit("each", [0] * 50, metrics={"duration_ms": 100})
    assert frame_rows(told.loop("each")) == 200  # 1,000 rows would fit, growth is fourfold


@pytest.mark.parametrize(
    ("template", "missing"),
    [
        ("{{ itemz }}", "itemz"),
        ("{{ workload.itemz }}", "workload.itemz"),
        ("{{ ctx.found.rows }}", "ctx.found"),
        ("{{ first.rwos }}", "first.rwos"),
        ("{{steps.frist.rows}}", "steps.frist"),
    ],
)
def test_a_collection_by_a_name_that_nobody_gives_fails_the_step(
    template: str, missing: str
) -> None:
    told = after_rows(template)
    assert told.status == "FAILED"
    message = told.of("playbook.failed")[0].error.message
    assert message.startswith(f"loop of step 'each': `{template}`: there is no {missing} to loop")
    assert f"{{{{ {missing} | default([]) }}}}" in message


@pytest.mark.parametrize(
    "template",
    [
        "{{ first.rows }}",
        "{{ workload.none }}",
        "{{ first.none }}",
        "{{ first.answer.items }}",
        "{{ itemz | default([]) }}",
    ],
)
def test_a_collection_that_the_data_leave_empty_is_no_rows(template: str) -> None:
    told = after_rows(template)
    assert told.open == ["after"]
    assert told.of("loop.done")[0].stats.total == 0


def after_rows(template: str) -> Story:
    workflow = LOOP.format(mode="parallel", more="").replace("{{ workload.items }}", template)
    first = "workflow:\n  - {step: first, tool: {kind: noop}, next: each}"
    told = Story(HEAD + workflow.replace("workflow:", first), none=None)
    told.complete("first", {"rows": [], "none": None, "answer": {}})
    return told


def test_items_that_are_no_items_fail_the_step_in_words() -> None:
    told = looping("parallel", items=7)
    assert told.status == "FAILED"
    assert "which has no items" in told.of("playbook.failed")[0].error.message


@pytest.mark.parametrize(
    "bound",
    [
        "max_in_flight: '{{ 0.5 }}'",
        "frame: {max_rows: '{{ 1 / 2 }}'}",
        "frame: {max_rows: '{{ 0 }}'}",
    ],
)
def test_a_bound_that_is_no_whole_number_from_one_fails_the_step(bound: str) -> None:
    told = looping("parallel", f", {bound}")
    assert told.status == "FAILED"
    assert "use a whole number from 1" in told.of("playbook.failed")[0].error.message


def test_a_loop_may_go_over_the_result_of_the_step_before() -> None:
    told = Story(
        f"""{HEAD}workflow:
  - {{step: start, tool: {{kind: noop}}, next: each}}
  - {{step: each, loop: {{in: "{{{{ result.rows }}}}", iterator: item}}, tool: {{kind: noop}}}}
"""
    )
    told.complete("start", {"rows": ["a", "b"]})

    assert told.of("loop.started")[0].collection == ["a", "b"]
