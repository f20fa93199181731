"""Results are called by their coordinates, whatever steps and tasks are called."""

import pytest

from noetl.domain.naming.result_name import (
    DatasetName,
    ResultName,
    parse_dataset_name,
    parse_result_name,
    parse_results,
)
from noetl.kernel.errors import NameInvalid
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope

EXECUTION = ExecutionId("478775660589088776")


def result(step: str = "load", task: str | None = None, **more: int) -> ResultName:
    return ResultName(
        tenant="acme",
        project="research",
        execution_id=EXECUTION,
        step=StepName(step),
        task=task,
        **more,
    )


def part(name: ResultName) -> str:
    return name.uri.split("/")[6]


def test_a_result_has_all_its_coordinates_in_its_name() -> None:
    name = result(frame=3, row=17, attempt=2, visit=4)
    assert name.uri == f"noetl://acme/research/results/{EXECUTION}/load/3/17/2@4"
    assert parse_result_name(name.uri) == name
    assert name.scope == Scope("acme", "research")


def test_the_result_of_a_single_tool_is_row_0_of_frame_0() -> None:
    assert result().uri == f"noetl://acme/research/results/{EXECUTION}/load/0/0/1@1"


def test_a_task_has_its_own_result_for_each_run() -> None:
    assert part(result(task="fetch")) == "load%3Afetch"
    assert part(result(task="fetch", run=2)) == "load%3Afetch%232"


@pytest.mark.parametrize(
    ("step", "written"),
    [
        ("a b", "a%20b"),
        ("a/b", "a%2Fb"),
        ("a@2", "a%402"),
        ("..", "%2E%2E"),
        ("a:b", "a%253Ab"),
        ("a#2", "a%25232"),
        ("50%", "50%2525"),
        ("schön", "sch%C3%B6n"),
    ],
)
def test_a_step_is_one_part_whatever_it_is_called(step: str, written: str) -> None:
    name = result(step)
    assert part(name) == written
    assert parse_result_name(name.uri) == name


def test_names_that_look_alike_are_told_apart() -> None:
    alike = [
        result("a:b"),
        result("a", task="b"),
        result("a", task="b", run=2),
        result("a", task="b#2"),
        result("a:b#2"),
        result("a%3Ab"),
        result("a", task="b%232"),
    ]
    assert len({name.uri for name in alike}) == len(alike)
    assert [parse_result_name(name.uri) for name in alike] == alike


def test_the_dataset_of_a_stage_has_no_frame_and_no_row() -> None:
    name = DatasetName(
        tenant="acme", project="research", execution_id=EXECUTION, step=StepName("a:b"), visit=2
    )
    assert name.uri == f"noetl://acme/research/results/{EXECUTION}/a%253Ab@2"
    assert parse_dataset_name(name.uri) == parse_results(name.uri) == name
    assert name.scope == Scope("acme", "research")


def test_a_name_without_a_row_is_row_0() -> None:
    assert parse_results("noetl://acme/research/results/1/load/3/2@4") == parse_results(
        "noetl://acme/research/results/1/load/3/0/2@4"
    )


def test_a_tenant_called_tenant_has_results_too() -> None:
    name = ResultName(
        tenant="tenant", project="org", execution_id=EXECUTION, step=StepName("worker")
    )
    assert name.uri.startswith("noetl://%74enant/org/results/")
    assert parse_result_name(name.uri) == name


@pytest.mark.parametrize(
    ("uri", "advice"),
    [
        ("noetl://acme/research/results/1/load/0/0/1", "names no result"),
        ("noetl://acme/research/tables/1/load/0/0/1@1", "names no result"),
        ("noetl://acme/research/results/1@1", "other parts"),
        ("noetl://acme/research/results/1/load/0@1", "other parts"),
        ("noetl://acme/research/results/1/load/0/0/1/2@1", "other parts"),
        ("noetl://acme/research/results/1/load/0/00/1@1", "leading zero"),
        ("noetl://acme/research/results/1/load/0/-1/1@1", "leading zero"),
        ("noetl://acme/research/results/1/load/0/٣/1@1", "leading zero"),
        ("noetl://acme/research/results/1/load/0/0/0@1", "count from 1"),
        ("noetl://acme/research/results/1/load/0/0/1@0", "count from 1"),
        ("noetl://acme/research/results/1/load/0/0/1@latest", "no visit"),
        ("noetl://acme/research/results/1/a%25/0/0/1@1", "bare %"),
        ("noetl://acme/research/results/1/a%3Ab%3Ac/0/0/1@1", "neither step"),
        ("noetl://acme/research/results/1/a%232/0/0/1@1", "neither step"),
        ("noetl://acme/research/results/1/a%3Ab@1", "only a step"),
        ("noetl://tenant/acme/org/research", "no logical name"),
    ],
)
def test_what_names_no_result_is_refused(uri: str, advice: str) -> None:
    with pytest.raises(NameInvalid, match=advice):
        parse_results(uri)


def test_a_dataset_is_not_a_result_and_a_result_not_a_dataset() -> None:
    with pytest.raises(NameInvalid, match="dataset of a stage"):
        parse_result_name("noetl://acme/research/results/1/load@1")
    with pytest.raises(NameInvalid, match="one result"):
        parse_dataset_name("noetl://acme/research/results/1/load/0/0/1@1")


@pytest.mark.parametrize(
    "wrong", [{"run": 0}, {"frame": -1}, {"row": -1}, {"attempt": 0}, {"visit": 0}, {"row": 10**19}]
)
def test_coordinates_out_of_range_make_no_name(wrong: dict[str, int]) -> None:
    with pytest.raises(NameInvalid):
        result("load", "fetch", **wrong)


def test_only_a_task_has_runs() -> None:
    with pytest.raises(NameInvalid, match="name of the task"):
        result(run=2)
    with pytest.raises(NameInvalid, match="task is empty"):
        result(task="")
