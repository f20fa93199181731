"""What a killed process left is removed by the next one; what is in use is not."""

from pathlib import Path

from noetl.spark.driver_folder import LOG_TAIL_BYTES, DriverFolder, sweep


def test_only_folders_without_an_owner_are_swept() -> None:
    folder = DriverFolder()
    parent = folder.path.parent
    left = parent / "noetl-spark-left-by-a-test"
    left.mkdir()
    (left / "lock").touch()

    sweep(parent)

    assert not left.exists()
    assert folder.path.exists()
    folder.remove()
    assert not folder.path.exists()


def test_a_folder_that_is_being_made_is_not_swept(tmp_path: Path) -> None:
    young = tmp_path / "noetl-spark-young"
    young.mkdir()
    sweep(tmp_path)
    assert young.exists()


def test_the_tail_of_a_log_is_bounded() -> None:
    folder = DriverFolder()
    folder.log.write_text("x" * 10_000 + "the end")
    assert folder.log_tail().endswith("the end")
    assert len(folder.log_tail()) == LOG_TAIL_BYTES
    folder.remove()
    assert folder.log_tail() == ""
