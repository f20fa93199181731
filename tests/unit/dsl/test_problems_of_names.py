"""Names that nothing gives are told before a run, where they stand; other names are not."""

from pathlib import Path

import pytest

from noetl.domain.playbook.wording import misspelt
from noetl.dsl.check import check
from noetl.dsl.language import names
from noetl.kernel.ids import ExecutionId
from noetl.templates import places
from noetl.templates.bindings import Bindings, all_of
from noetl.templates.functions import FUNCTIONS
from noetl.templates.layered import Outcome
from noetl.templates.sandbox import Sandbox
from tests.unit.dsl.writing import places as spots
from tests.unit.dsl.writing import said, with_steps, with_tool

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOKS = sorted(
    path
    for pattern in (
        "tests/golden/playbooks/v*/*.yaml",
        "tests/golden/playbooks/v*/runs/**/*.yaml",
        "examples/**/*.yaml",
    )
    for path in ROOT.glob(pattern)
)
WORDS = ("nothing in this playbook gives", "templates have no", "is not known when")

KNOWN = with_steps(
    """
    - step: fetch
      input: {limit: 5}
      loop: {in: "{{ workload.cities }}", iterator: city, spec: {mode: parallel}}
      tool:
        - name: shape
          kind: http
          url: "{{ api_url }}/{{ iter.city }}/{{ city }}?{{ iter._index }}&{{ limit }}"
          input: {page: "{{ iter.page | default(1) }}"}
          set: {document: "{{ output }}"}
          spec:
            policy:
              rules:
                - when: "{{ output.error.retryable }}"
                  then: {do: retry}
                - else:
                    then: {do: continue, set: {iter.page: "{{ page + 1 }}", ctx.seen: true}}
        - name: count
          kind: noop
          result: "{{ shape.data }} {{ document }} {{ _prev }} {{ results }} {{ loop_index }}"
      output: {as: pages}
      set: {ctx.totals.paid: "{{ output.data }}"}
      next:
        arcs:
          - {step: finish, when: "{{ event.name == 'loop.done' }}", set: {ctx.batch: 7}}
    - step: finish
      tool:
        kind: python
        input:
          all: "{{ pages.results }} {{ fetch }} {{ steps.fetch }} {{ ctx.totals.paid }}"
          more: "{{ ctx.batch }} {{ batch }} {{ ctx.seen }} {{ seen }} {{ totals }}"
          own: "{{ execution_id }} {{ job.uuid }} {{ now() }} {{ spec.state }} {{ env.X }}"
          each: "{% for part in pages.results %}{{ part }}{{ loop.index }}{% endfor %}"
          kept: "{% set total = 1 %}{{ total + workload.get('other', 0) }}"
          maybe: "{{ unheard | default(0) }} {{ unsaid or 1 }} {{ 1 if unknown is defined else 2 }}"
          key: "{{ keychain.api.token }}"
        code: |
          result = f"{{all}} {notaname}"
    """,
    """
    workload: {api_url: x, cities: [Lima], id: "{{ job.uuid }} {{ payload.x }} {{ env.X }}"}
    keychain: [{name: api, kind: bearer, token: "{{ api_url }}"}]
    spec: {state: on}
    """,
)


def test_names_that_something_gives_are_known() -> None:
    assert said(KNOWN) == []
    assert check(KNOWN).asks_for == ()


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_no_playbook_that_runs_is_suspected(path: Path) -> None:
    told = [line for line in said(path.read_bytes()) if any(words in line for words in WORDS)]
    assert told == []


@pytest.mark.parametrize(
    ("template", "wrong", "right"),
    [
        ("{{ citys }}", "citys", "city"),
        ("{{ iter.ciyt }}", "iter.ciyt", "iter.city"),
        ("{{ workload.citties }}", "workload.citties", "workload.cities"),
        ("{{ worklaod.cities }}", "worklaod", "workload"),
        ("{{ ctx.totls | int }}", "ctx.totls", "ctx.totals"),
        ("{{ ctx['totalz'] }}", "ctx.totalz", "ctx.totals"),
        ("{{ apiUrl }}", "apiUrl", "api_url"),
        ("{{ 1 if fecth.rows else 2 }}", "fecth", "fetch"),
        ("{{ steps.fetchh.rows }}", "steps.fetchh", "steps.fetch"),
        ("{% if outputs %}yes{% endif %}", "outputs", "output"),
    ],
)
def test_a_slip_of_the_pen_is_told_with_what_was_meant(
    template: str, wrong: str, right: str
) -> None:
    text = KNOWN.replace("{{ pages.results }} {{ fetch }}", template)

    (told,) = said(text)

    assert told.startswith(
        f"warning: nothing in this playbook gives {{{{ {wrong} }}}}: it is empty"
    )
    assert f"did you mean {right!r}?" in told
    assert check(text).is_sound


def test_a_warning_says_where_the_name_stands() -> None:
    text = with_steps(
        """
        - step: start
          tool:
            kind: postgres
            auth: pg
            query: |
              SELECT 1;
              SELECT {{ limmit }};
        """,
        "workload: {limit: 5}\n",
    )

    assert spots(text) == [(10, 14, "workflow[0].tool.query")]
    assert "(line 2 of the text)" in said(text)[0]


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ iter.row }}", "use the loop's `iterator`"),
        ("{{ steps.nowhere }}", "use the name of a step"),
        ("{{ keychain.shop.token }}", "add it to `keychain`"),
        ("{{ city | defualt('') }}", "did you mean 'default'?"),
        ("{{ city is definde }}", "did you mean 'defined'?"),
    ],
)
def test_what_no_request_can_bring_is_a_mistake_in_any_spelling(template: str, told: str) -> None:
    (problem,) = said(KNOWN.replace("{{ pages.results }} {{ fetch }}", template))

    assert problem.startswith("warning: ")
    assert told in problem


def test_a_workload_cannot_read_itself() -> None:
    text = with_tool("kind: noop", 'workload: {base: x, url: "{{ base }}/y"}\n')

    (told,) = said(text)

    assert "{{ base }} is not known when the workload is rendered" in told


def test_names_that_only_a_request_can_bring_are_what_a_playbook_asks_for() -> None:
    text = with_tool(
        'kind: noop\nresult: "{{ api }} {{ workload.shop }} {{ ctx.day }} {{ q | default(1) }}"'
    )

    assert said(text) == []
    assert check(text).asks_for == ("api", "day", "shop")


def test_an_input_does_not_give_itself() -> None:
    text = with_tool("kind: noop\ninput: {who: '{{ who }}'}\nresult: '{{ who }}'")

    assert check(text).asks_for == ("who",)


def test_numbers_at_the_end_and_short_words_are_no_slips() -> None:
    assert misspelt("page_2", ["page_1"]) is None
    assert misspelt("api", ["app"]) is None
    assert misspelt("pagse", ["pages"]) == "pages"
    assert misspelt("page", ["pages"]) == "pages"
    assert misspelt("pagees", ["pages"]) == "pages"
    assert misspelt("fetch", ["fetched"]) is None


def test_the_names_of_the_engine_are_all_listed() -> None:
    run = places.Run(execution_id=ExecutionId("1"))
    outcome = Outcome()
    step = places.for_step(places.Known(run=run))
    row = places.Iteration(iterator="row", item=1, index=0)
    frame = places.Frame(index=0)
    task = places.Task(name="t", previous=outcome, input={"x": 1})
    all_places: list[Bindings] = [
        places.for_frame_row(step, frame, row),
        places.for_frame(step, frame, "row"),
        places.for_claim(step, {}, "0"),
        places.for_task(step, task),
        places.for_rule(step, outcome),
        places.for_loop_done(step, outcome, {}, 1),
    ]
    given = {name for each in all_places for name in all_of((*each.own, *each.handy))}
    at_start = places.for_workload(run)
    sandbox = Sandbox(reveals=False)

    assert given <= names.ENGINE_NAMES
    assert set(FUNCTIONS) == names.FUNCTIONS
    assert {*all_of(at_start.own), *all_of(at_start.handy), *FUNCTIONS} == names.WORKLOAD_NAMES
    assert {name for name in sandbox.filters if ":" not in name} == names.FILTERS
    assert {name for name in sandbox.tests if name.isidentifier()} == names.TESTS
