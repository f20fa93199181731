"""What a slot checks before it starts, and what a job may be."""

import gc
import zipfile
from pathlib import Path

import msgspec
import pytest

from noetl.spark.driver_program import said
from noetl.spark.slot_task import check_versions, frozen, unpack_code, versions
from noetl.spark.slots import SlotJob, slot_function

EXPECTED = {"noetl": "1.0", "Python": "3.12", "Arrow": "26.0"}


def test_the_same_versions_are_fine() -> None:
    check_versions(versions(), versions(), "here")


@pytest.mark.parametrize("name", ["noetl", "Python", "Arrow"])
def test_another_version_is_refused_and_both_are_named(name: str) -> None:
    with pytest.raises(RuntimeError) as refusal:
        check_versions(EXPECTED, {**EXPECTED, name: "0.9"}, "node-7")
    expected = f"node-7 has {name} 0.9 where the driver has {EXPECTED[name]}"
    assert str(refusal.value) == f"this slot does not start: {expected}"


def test_what_is_loaded_leaves_the_sight_of_the_collector_once() -> None:
    try:
        assert list(frozen(iter)([1, 2])) == [1, 2]
        count = gc.get_freeze_count()
        assert count > 0
        assert list(frozen(iter)([3])) == [3]
        assert gc.get_freeze_count() <= count
    finally:
        gc.unfreeze()


def test_a_job_keeps_its_argument_to_itself() -> None:
    job = SlotJob(tag="t", stage_id="s", slots=1, function="m:f", argument=b"hidden")
    assert "hidden" not in repr(job)


@pytest.mark.parametrize(
    "wrong", [{"tag": "a,b"}, {"slots": 0}, {"function": "module"}, {"incarnation_first": -1}]
)
def test_a_job_that_spark_could_not_run_is_refused(wrong: dict[str, object]) -> None:
    right = {"tag": "t", "stage_id": "s", "slots": 1, "function": "module:name"}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**right, **wrong}, SlotJob)


def test_functions_are_found_by_name() -> None:
    found: object = slot_function("msgspec.json:decode")
    assert found is msgspec.json.decode


def test_a_failure_is_told_without_the_stacks_of_the_jvm() -> None:
    text = (
        "Job aborted.\n  File 'x', line 1, in f\nValueError: too small\n\n"
        "\tat org.apache.spark.Thing(Thing.scala:1)\n"
    )
    assert said(RuntimeError(text)) == "ValueError: too small"
    assert said(RuntimeError("No such master\n\tat org.apache")) == "No such master"
    assert said(RuntimeError()) == "RuntimeError"
    wire = '<_InactiveRpcError of RPC:\n\tstatus = 16\n\tdetails = "no such token"\n\tmore = "x"\n>'
    assert said(RuntimeError(wire)) == "no such token"


def test_code_that_came_in_an_archive_is_unpacked_once_and_used_from_there(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    path, modules = [str(tmp_path), str(archive)], {"noetl": 1, "noetl.kernel": 2, "noetlike": 3}
    unpack_code(path, modules)
    assert path == [str(tmp_path), str(tmp_path / "noetl-1.0-abc"), str(archive)]
    assert (tmp_path / "noetl-1.0-abc/noetl/__init__.py").is_file()
    assert modules == {"noetlike": 3}
    unpack_code([str(archive)], modules)
    assert sorted(each.name for each in tmp_path.iterdir()) == [archive.stem, archive.name]


def test_tasks_that_follow_in_a_worker_find_what_is_loaded(tmp_path: Path) -> None:
    archive = _archive(tmp_path)
    path = ["", str(archive)]
    unpack_code(path, {})
    seen, modules = list(path), {"noetl": 1, "noetl.bootstrap.stage_slot": 2}
    for _ in range(2):
        if str(archive) not in path:  # as Spark does before each task
            path.insert(1, str(archive))
        unpack_code(path, modules)
    assert path == seen
    assert len(modules) == 2


def _archive(folder: Path) -> Path:
    archive = folder / "noetl-1.0-abc.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("noetl/__init__.py", "")
    return archive
