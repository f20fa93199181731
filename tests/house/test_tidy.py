"""The house rules catch what they are there to catch, and nothing else."""

from pathlib import Path

import pytest

from scripts import tidy

# In halves, or the house would report this file.
UNFINISHED = "TO" + "DO"
HOME = "/ho" + "me/someone/data"


def found(root: Path, name: str, text: str) -> list[str]:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return [str(problem) for problem in tidy.problems(root)]


def function(lines: int) -> str:
    return "def long():\n" + "    x = 1\n" * (lines - 1)


def port(methods: int, base: str = "Protocol") -> str:
    body = "".join(f"    async def m{number}(self) -> None: ...\n" for number in range(methods))
    return f'"""A port."""\n\nclass Wide({base}):\n{body}'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/noetl/kernel/ids.py", '"""Names."""\n'),
        ("src/noetl/ports/event_log.py", port(tidy.PORT_METHODS_MAX)),
        ("src/noetl/runtime/wide.py", port(tidy.PORT_METHODS_MAX + 1)),
        ("tests/unit/test_fold.py", function(tidy.FUNCTION_LINES_MAX)),
        ("tests/unit/test_long.py", "x = 1\n" * tidy.MODULE_LINES_MAX),
        ("tests/unit/test_database.py", "class Database: ...\nclass Base64Text: ...\n"),
        ("benchmarks/append.py", f"{'#' * tidy.LINE_COLUMNS_MAX}\n"),
        ("notes.md", f"{'x' * 300} {UNFINISHED}\n"),
        (".venv/lib/common.py", f"# {UNFINISHED} {HOME}\n"),
    ],
)
def test_what_keeps_the_rules_passes(tmp_path: Path, name: str, text: str) -> None:
    assert found(tmp_path, name, text) == []


@pytest.mark.parametrize(
    ("name", "text", "line", "words"),
    [
        ("tests/test_long.py", "x = 1\n" * 301, 301, "301 lines"),
        ("tests/test_f.py", "\n" + function(51), 2, "long has 51 lines"),
        ("tests/test_f.py", "async " + function(51), 1, "long has 51 lines"),
        ("examples/wide.py", "x = 1\n" + "#" * 101 + "\n", 2, "101 columns"),
        ("src/noetl/kernel/ids.py", "import enum\n", 1, "must be a docstring"),
        ("src/noetl/kernel/ids.py", '\n"""Late."""\n', 1, "must be a docstring"),
        ("src/noetl/kernel/ids.py", '"""\nLate."""\n', 1, "must be a docstring"),
        ("src/noetl/kernel/__init__.py", "", 1, "must be a docstring"),
        ("tests/utils.py", "", 1, "the name utils"),
        ("tests/common/test_a.py", "", 1, "the name common"),
        ("tests/event_handler.py", "", 1, "the name event_handler"),
        ("tests/codec_v2.py", "", 1, "the name codec_v2"),
        ("tests/test_a.py", "class LeaseManager: ...\n", 1, "the name LeaseManager"),
        ("tests/test_a.py", "class BaseLog: ...\n", 1, "the name BaseLog"),
        ("tests/test_a.py", "class LogCompat: ...\n", 1, "the name LogCompat"),
        ("src/noetl/ports/a.py", port(9), 3, "Wide has 9 methods"),
        ("src/noetl/ports/a.py", port(9, "typing.Protocol[T]"), 3, "Wide has 9 methods"),
        ("tests/test_a.py", f"x = 1\n# {UNFINISHED}\n", 2, UNFINISHED),
        ("notes.md", f"see\n{HOME}\n", 2, "path of one machine"),
        (".ci/run", f"cd {HOME}\n", 1, "path of one machine"),
        ("tests/test_a.py", "def (\n", 1, "does not parse"),
        ("tests/golden/big.json", "x" * 1_000_001, 1, "1000001 bytes"),
    ],
)
def test_a_breach_is_reported_where_it_is(
    tmp_path: Path, name: str, text: str, line: int, words: str
) -> None:
    (problem,) = found(tmp_path, name, text)

    assert problem.startswith(f"{name}:{line}: ")
    assert words in problem


def test_bytes_that_are_no_text_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "logo.png").write_bytes(b"\xff\xfe\x00" + HOME.encode())

    assert list(tidy.problems(tmp_path)) == []
