"""Golden files may be added; a committed one may not change, move or go."""

import os
import subprocess
from pathlib import Path

import pytest

from scripts import golden_guard


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # A hook that runs the tests points git at its own repository; these tests have theirs.
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "tests" / "golden"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text("{}\n", encoding="utf-8")
    (folder / "README.md").write_text("# Golden\n", encoding="utf-8")
    (tmp_path / "other.txt").write_text("1\n", encoding="utf-8")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    return folder


@pytest.fixture
def frozen(golden: Path, tmp_path: Path) -> Path:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    git(tmp_path, *identity, "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "first")
    return golden


def test_before_the_first_commit_nothing_is_frozen(golden: Path, tmp_path: Path) -> None:
    (golden / "a.json").write_text("[]\n", encoding="utf-8")

    assert golden_guard.touched(tmp_path) == []


def test_adding_and_working_elsewhere_passes(frozen: Path, tmp_path: Path) -> None:
    (frozen / "b.json").write_text("{}\n", encoding="utf-8")
    (tmp_path / "other.txt").write_text("2\n", encoding="utf-8")
    git(tmp_path, "add", ".")

    assert golden_guard.touched(tmp_path) == []


def test_the_explanation_may_be_improved(frozen: Path, tmp_path: Path) -> None:
    (frozen / "README.md").write_text("# Golden files\n", encoding="utf-8")

    assert golden_guard.touched(tmp_path) == []


def test_an_edit_fails_staged_or_not(frozen: Path, tmp_path: Path) -> None:
    (frozen / "a.json").write_text("[]\n", encoding="utf-8")
    assert golden_guard.touched(tmp_path) == ["tests/golden/a.json"]

    git(tmp_path, "add", ".")
    assert golden_guard.touched(tmp_path) == ["tests/golden/a.json"]


def test_removing_or_renaming_fails(frozen: Path, tmp_path: Path) -> None:
    git(tmp_path, "mv", "tests/golden/a.json", "tests/golden/b.json")

    assert golden_guard.touched(tmp_path) == ["tests/golden/a.json"]


def test_an_edit_that_was_committed_is_still_found(frozen: Path, tmp_path: Path) -> None:
    (frozen / "a.json").write_text("[]\n", encoding="utf-8")
    identity = ("-c", "user.name=Test", "-c", "user.email=test@localhost")
    git(tmp_path, *identity, "-c", "commit.gpgsign=false", "commit", "-qam", "an edit")

    assert golden_guard.touched(tmp_path) == ["tests/golden/a.json"]
