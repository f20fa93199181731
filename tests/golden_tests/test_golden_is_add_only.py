"""The corpus grows and never changes: by hand, by the generator or by a commit."""

from pathlib import Path

import pytest

from noetl.domain.execution.fold import FOLD_VERSION
from scripts import golden, golden_guard
from scripts.golden_corpus.files import ROOT, corpora

BYTES_MAX = 300_000


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_nothing_that_was_committed_has_changed() -> None:
    assert golden_guard.touched(ROOT) == []


def test_every_commit_is_checked_by_the_same_guard() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    (hook,) = (part for part in hooks.split("- id: ") if part.startswith("golden\n"))

    assert "entry: make check-golden" in hook
    assert "always_run: true" in hook
    assert "scripts/golden_guard.py" in targets


def test_the_corpus_is_small() -> None:
    for corpus in corpora():
        files = [path for path in corpus.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) < BYTES_MAX


def test_a_second_run_adds_nothing(tmp_path: Path) -> None:
    files = golden.corpus("v9", tmp_path)

    assert sorted(golden.write(files)) == sorted(files)
    assert golden.write(files) == []


def test_a_missing_file_is_added_beside_the_others(tmp_path: Path) -> None:
    files = golden.corpus("v9", tmp_path)
    golden.write(files)
    lost = tmp_path / "v9" / "events" / "call.done.v1.jsonl"
    lost.unlink()

    assert golden.write(golden.corpus("v9", tmp_path)) == [lost]


def test_a_file_that_would_change_stops_the_whole_run(tmp_path: Path) -> None:
    golden.write(golden.corpus("v9", tmp_path))
    edited = tmp_path / "v9" / "histories" / "visits.expected.json"
    other = edited.read_text(encoding="ascii").replace("COMPLETED", "FAILED")
    edited.write_text(other, encoding="ascii")
    lost = tmp_path / "v9" / "snowflakes.json"
    lost.unlink()

    with pytest.raises(SystemExit, match=r"choose a new folder:\n.*visits\.expected\.json"):
        golden.write(golden.corpus("v9", tmp_path))

    assert edited.read_text(encoding="ascii") == other
    assert not lost.exists()


def test_a_new_folder_holds_only_what_the_others_do_not(tmp_path: Path) -> None:
    golden.write(golden.corpus("v9", tmp_path))
    moved = tmp_path / "v9" / "events" / "call.done.v1.jsonl"
    moved.write_bytes(moved.read_bytes() + b"\n")

    added = golden.corpus("v10", tmp_path)

    kept = [path.name for path in added if path.parent.name in ("events", "histories")]
    assert kept == ["call.done.v1.jsonl"]


def test_another_fold_answers_to_the_old_histories_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden.write(golden.corpus("v9", tmp_path))
    assert not [path for path in golden.corpus("v10", tmp_path) if "replays" in path.parts]

    monkeypatch.setattr(golden, "FOLD_VERSION", FOLD_VERSION + 1)
    added = golden.write(golden.corpus("v10", tmp_path))

    replays = [path for path in added if "replays" in path.parts]
    assert tmp_path / "v10" / "replays" / "v9" / "visits.expected.json" in replays
    assert len(replays) == len(list((tmp_path / "v9" / "histories").glob("*.jsonl")))


@pytest.mark.parametrize("arguments", [[], ["0.1"], ["version"], ["v0.1", "v0.2"]])
def test_the_generator_must_be_told_one_folder(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="say which folder"):
        golden.main(arguments)
