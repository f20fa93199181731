"""What an author is told about `output` blocks: what they mean here, and what only hints."""

import pytest

from noetl.domain.playbook.keeping import STORE_KINDS, output_of, place_of
from noetl.domain.playbook.values import Output, ResultStore, Selection
from tests.unit.dsl.writing import playbook, said, step, with_steps, with_tool


def about(output: str, more: str = "") -> list[str]:
    return said(with_steps(f"- {{step: start, tool: {{kind: noop}}, output: {output}{more}}}"))


@pytest.mark.parametrize("kind", [kind for kind in STORE_KINDS if kind != "memory"])
def test_every_kind_of_store_is_a_place(kind: str) -> None:
    assert about(f"{{store: {{kind: {kind}}}}}") == []
    assert place_of(ResultStore(kind=kind)) in ("by_size", "inside", "outside")


def test_driver_is_another_word_for_kind_and_result_for_output() -> None:
    made = step("- {step: start, tool: {kind: noop}, result: {store: {driver: gcs}}}")

    assert made.output == Output(store=ResultStore(kind="gcs"))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("{accumulate: {strategy: append}}", "'accumulate' of output is a hint for other engines"),
        ("{store: {kind: s3, bucket: b}}", "'bucket' of store is a hint for other engines"),
        ("{store: {prefix: p}}", "'prefix' of store is a hint for other engines"),
        ("{store: {ttl: 1h}}", "'ttl' of store is a hint for other engines"),
        ("{store: {compression: gzip}}", "'compression' of store is a hint for other engines"),
        ("{store: {auth: c}}", "'credential' of store is a hint for other engines"),
        ("{store: {kind: memory}}", "no result is kept in memory alone"),
        ("{scope: permanent}", "`scope: permanent` has no effect"),
        ("{inline_max_bytes: '{{ n }}'}", "'inline_max_bytes' is a template and has no effect"),
    ],
)
def test_a_hint_for_other_engines_is_accepted_with_a_warning(output: str, message: str) -> None:
    (problem,) = about(output)

    assert problem.startswith(f"warning: {message}")


@pytest.mark.parametrize(
    "output",
    ["{output_select: ['rows[0].x']}", "{select: [{path: 'rows[0].x', as: x}, rows.x]}"],
)
def test_a_selected_item_of_a_list_is_told_to_be_nothing(output: str) -> None:
    (problem,) = about(output)

    assert problem.startswith("warning: 'rows[0].x' selects nothing")
    assert problem.endswith("write 'rows'")


@pytest.mark.parametrize("output", ["{store: {compression: none}}", "{scope: execution}"])
def test_what_says_how_it_is_anyway_needs_no_warning(output: str) -> None:
    assert about(output) == []


@pytest.mark.parametrize("alias", ["start", "ctx"])
def test_another_name_must_be_free(alias: str) -> None:
    (problem,) = about(f"{{as: {alias}}}")

    assert problem == (
        f"error: `as: {alias}` of step 'start' is the name of something else; choose another name"
    )


def test_two_steps_cannot_have_the_same_other_name() -> None:
    two = """
        - {step: start, tool: {kind: noop}, output: {as: same}, next: b}
        - {step: b, tool: {kind: noop}, output: {as: same}}
        """
    assert [problem.split(";")[0] for problem in said(with_steps(two))] == [
        "error: `as: same` of step 'b' is the name of something else"
    ]


def test_other_names_are_part_of_the_playbook() -> None:
    made = playbook(with_tool("{kind: noop, output: {as: loaded}}"))

    assert made.aliases == {"loaded": "start"}


def test_rows_of_a_loop_are_kept_by_frames() -> None:
    (problem,) = about("{store: {kind: object}}", ", loop: {in: [1], iterator: n}")

    assert problem.startswith("warning: `store` has no effect: the rows of the loop 'start'")


@pytest.mark.parametrize("output", ["{as: x}", "{select: [{path: a, as: b}]}"])
def test_a_task_of_a_pipeline_goes_by_its_own_name(output: str) -> None:
    (problem,) = said(with_tool(f"[{{name: t, kind: noop, output: {output}}}]"))

    assert problem.startswith("warning: `as` has no effect in task 't' of a pipeline")


def test_where_a_task_says_nothing_its_step_does() -> None:
    made = step(
        """
        - step: start
          tool: {kind: noop, output: {inline_max_bytes: 5, select: [a]}}
          output: {store: {kind: kv}, inline_max_bytes: 9, preview_max_bytes: 7, select: [a, b]}
        """
    )

    assert output_of(made) == Output(
        store=ResultStore(kind="kv"),
        select=(Selection(path="a", name="a"), Selection(path="b", name="b")),
        inline_bytes_max=5,
        preview_bytes_max=7,
    )
