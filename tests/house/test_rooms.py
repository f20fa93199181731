"""The map of rooms is drawn from docstrings, and a stale one is noticed."""

from pathlib import Path

import pytest

from scripts import rooms

MAP = """\
noetl/          The whole house.
  main.py       The door.
  domain/       What is true.
    fold.py     events -> state.
    execution/  One run.
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "noetl"
    (package / "domain" / "execution").mkdir(parents=True)
    (package / "__pycache__").mkdir()
    for name, docstring in {
        "__init__.py": "The whole house.",
        "main.py": "The door.\n\nMore about the door.",
        "domain/__init__.py": "What is true.",
        "domain/fold.py": "events -> state.",
        "domain/execution/__init__.py": "One run.",
    }.items():
        (package / name).write_text(f'"""{docstring}"""\n', encoding="utf-8")
    return tmp_path


@pytest.fixture
def page(root: Path) -> Path:
    page = root / "ARCHITECTURE.md"
    page.write_text(
        f"# Map\n\n{rooms.BEGIN}\nyesterday\n{rooms.END}\n\nThe end.\n", encoding="utf-8"
    )
    return page


def test_modules_come_before_rooms_and_share_a_column(root: Path) -> None:
    assert rooms.draw(root / "src" / "noetl") == MAP


def test_writing_replaces_only_what_is_between_the_markers(root: Path, page: Path) -> None:
    rooms.write(root)

    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Map\n\n<!-- rooms:begin -->\n\n```text\nnoetl/ ")
    assert text.endswith("```\n\n<!-- rooms:end -->\n\nThe end.\n")
    assert MAP in text
    assert "yesterday" not in text


def test_a_written_map_is_current_until_a_docstring_changes(root: Path, page: Path) -> None:
    rooms.write(root)
    rooms.check(root)

    (root / "src/noetl/main.py").write_text('"""The gate."""\n', encoding="utf-8")

    with pytest.raises(rooms.MapProblem, match="stale; run: make fix"):
        rooms.check(root)


def test_a_missing_page_is_named(root: Path) -> None:
    with pytest.raises(rooms.MapProblem, match=r"ARCHITECTURE\.md is missing"):
        rooms.check(root)


def test_missing_markers_are_named(root: Path, page: Path) -> None:
    page.write_text(f"# Map\n{rooms.BEGIN}\n", encoding="utf-8")

    with pytest.raises(rooms.MapProblem, match=rooms.END):
        rooms.write(root)
