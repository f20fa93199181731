"""Chunks go on one by one while their step runs, and the step ends after the last."""

from typing import Any

from noetl.decider.answers import Decided
from noetl.decider.requests import retry
from noetl.domain.events import CallPartial
from noetl.kernel.ids import StepName
from noetl.templates.recorded import inline_result
from noetl.testing.story import Story

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: story, path: tests/story}\n"
PAGES = StepName("pages")
STREAM = """
workflow:
  - step: pages
    tool: {kind: python, code: "result = 1"}
    next:
      arcs:
        - {step: store, on: call.partial, set: {ctx.page: "{{ event.chunk_index }}"}}
        - {step: last, on: call.done}
  - {step: store, tool: {kind: noop}, next: check}
  - {step: check, tool: {kind: noop}}
  - {step: last, tool: {kind: noop}}
"""


def story(workflow: str = STREAM, **payload: Any) -> Story:
    return Story(HEAD + workflow, **payload)


def chunk(told: Story, index: int, *, has_more: bool = True, rows: int = 2) -> None:
    """As the holder of the step's command tells it."""
    row = next(row for row in told.state.commands.values() if row.step == PAGES)
    event = CallPartial(
        step=PAGES,
        chunk_index=index,
        has_more=has_more,
        result=inline_result({"page": index, "rows": rows}),
        visit=row.visit,
        task="pages",
    )
    told.tell(Decided(event=event, command_id=row.command_id))


def means(told: Story) -> Any:
    """What `{{ pages }}` stands for now."""
    return told.state.results[PAGES].context["value"]


def test_a_chunk_goes_on_while_its_step_runs() -> None:
    told = story()
    chunk(told, 0)

    assert told.open == ["pages", "store"]
    assert means(told) == {"page": 0, "rows": 2}
    assert told.state.ctx == {"page": 0}
    (passed,) = told.of("chunk.passed")
    assert (passed.arcs, passed.chunk_index) == (("store",), 0)


def test_the_next_one_waits_until_the_one_before_is_through() -> None:
    told = story()
    chunk(told, 0)
    chunk(told, 1)
    told.complete("store")
    assert (told.open, means(told)["page"]) == (["pages", "check"], 0)

    told.complete("check")

    assert (told.open, means(told)["page"]) == (["pages", "store"], 1)
    assert [each.visit for each in told.of("step.enter") if each.step == "store"] == [1, 2]


def test_the_step_ends_after_its_last_chunk_and_then_means_its_own_result() -> None:
    told = story()
    chunk(told, 0)
    chunk(told, 1, has_more=False)
    told.complete("pages", {"chunks": 2})
    assert told.open == ["store"]
    for _ in range(2):
        told.complete("store")
        assert not [each for each in told.of("step.exit") if each.step == PAGES]
        told.complete("check")

    assert (told.open, means(told)) == (["last"], {"chunks": 2})
    told.complete("last")
    assert told.status == "COMPLETED"


def test_chunks_alone_do_not_end_the_step() -> None:
    told = story()
    chunk(told, 0, has_more=False)
    told.complete("store")
    told.complete("check")

    assert told.open == ["pages"]


def test_a_chunk_that_no_arc_wants_is_passed_over() -> None:
    told = story(
        STREAM.replace("on: call.partial,", 'on: call.partial, when: "{{ output.rows }}",')
    )
    chunk(told, 0, rows=0)
    chunk(told, 1)

    assert [each.arcs for each in told.of("chunk.passed")] == [(), ("store",)]
    assert told.state.ctx == {"page": 1}


def test_guards_know_the_chunk_and_whether_more_follow() -> None:
    guards = "{{ event.name == 'call.partial' and not event.has_more and output.page == 1 }}"
    told = story(STREAM.replace("on: call.partial,", f'on: call.partial, when: "{guards}",'))
    chunk(told, 0)
    assert told.open == ["pages"]
    chunk(told, 1, has_more=False)
    assert told.open == ["pages", "store"]


def test_an_inclusive_router_gives_a_chunk_to_all_its_arcs() -> None:
    told = story("""
workflow:
  - step: pages
    tool: {kind: python, code: "result = 1"}
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: store, on: call.partial}
        - {step: count, on: call.partial}
        - {step: last, on: call.done}
        - {step: store, on: call.done}
  - {step: store, tool: {kind: noop}}
  - {step: count, tool: {kind: noop}}
  - {step: last, tool: {kind: noop}}
""")
    chunk(told, 0)
    chunk(told, 1)
    assert told.open == ["pages", "store", "count"]
    told.complete("store")
    assert len(told.of("chunk.passed")) == 1
    told.complete("count")
    assert len(told.of("chunk.passed")) == 2
    told.complete("pages")
    told.complete("store")
    told.complete("count")
    assert told.open == ["last", "store"]


def test_what_waits_at_a_join_for_the_step_itself_holds_no_chunk_up() -> None:
    told = story("""
workflow:
  - step: start
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: pages}, {step: other}]}
  - step: pages
    tool: {kind: python, code: "result = 1"}
    next: {arcs: [{step: store, on: call.partial}, {step: join, on: call.done}]}
  - {step: store, tool: {kind: noop}, next: join}
  - {step: other, tool: {kind: noop}, next: join}
  - {step: join, tool: {kind: noop}}
""")
    told.complete("start")
    told.complete("other")
    for index in range(3):
        chunk(told, index)
        assert told.open == ["pages", "store"]
        told.complete("store")
    told.complete("pages")

    assert told.open == ["join"]
    told.complete("join")
    assert told.status == "COMPLETED"


def test_a_step_that_fails_has_its_chunks_passed_on_first() -> None:
    told = story()
    chunk(told, 0)
    chunk(told, 1)
    told.fail("pages")
    assert told.status == "RUNNING"
    for _ in range(2):
        told.complete("store")
        told.complete("check")

    assert told.status == "FAILED"
    assert len(told.of("chunk.passed")) == 2


def test_a_failed_branch_lets_nothing_new_begin_and_a_retry_goes_on_with_it() -> None:
    told = story()
    for index in range(3):
        chunk(told, index)
    told.fail("store")
    assert told.open == ["pages"]
    told.complete("pages", {"chunks": 3})
    assert told.status == "FAILED"
    (left,) = (each for each in told.of("step.exit") if each.step == PAGES)
    assert (left.status, left.error.code) == ("FAILED", "chunks_left")
    assert "2 chunks wait for it" in left.error.message

    told.tell(*retry(told.state, told.plan.playbook, None, None))

    assert (sorted(told.open), means(told)["page"]) == (["pages", "store"], 0)
    for index in range(3):  # the task begins anew, and what was passed on is known
        chunk(told, index)
    assert len(told.of("chunk.passed")) == 1
    for _ in range(3):
        told.complete("store")
        told.complete("check")
    told.complete("pages", {"chunks": 3})
    assert [each.chunk_index for each in told.of("chunk.passed")] == [0, 1, 2]
    assert told.open == ["last"]


def test_a_branch_that_fails_over_the_last_chunk_takes_its_step_along() -> None:
    told = story()
    chunk(told, 0, has_more=False)
    told.complete("pages", {"chunks": 1})
    told.fail("store")
    assert told.status == "FAILED"

    told.tell(*retry(told.state, told.plan.playbook, None, None))

    assert (sorted(told.open), means(told)["page"]) == (["pages", "store"], 0)
    chunk(told, 0, has_more=False)
    told.complete("store")
    told.complete("check")
    told.complete("pages", {"chunks": 1})
    assert (told.open, means(told)) == (["last"], {"chunks": 1})


def test_arcs_that_cannot_be_judged_fail_the_step_when_its_work_is_over() -> None:
    told = story(STREAM.replace("{{ event.chunk_index }}", "{{ output.rows / 0 }}"))
    chunk(told, 0)
    assert told.open == ["pages"]
    told.complete("pages")

    assert told.status == "FAILED"
    (failed,) = told.of("playbook.failed")
    assert failed.error.kind == "template"


def test_a_step_that_comes_back_has_chunks_of_its_own() -> None:
    told = story(
        STREAM.replace(
            "step: last, tool: {kind: noop}", "step: last, next: pages, tool: {kind: noop}"
        )
    )
    chunk(told, 0)
    told.complete("store")
    told.complete("check")
    told.complete("pages")
    told.complete("last")

    chunk(told, 0)

    assert told.open == ["pages", "store"]
