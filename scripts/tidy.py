"""The house rules that ruff cannot check: sizes, names, room docstrings, things left behind."""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MODULE_LINES_MAX = 300
FUNCTION_LINES_MAX = 50
LINE_COLUMNS_MAX = 100
PORT_METHODS_MAX = 8
FILE_BYTES_MAX = 1_000_000

CODE_FOLDERS = ("src", "tests", "benchmarks", "scripts", "examples")
SKIPPED_FOLDERS = ("build", "dist", "node_modules", "__pycache__")

VAGUE_WORDS = {"util", "helper", "common", "core", "base", "manager", "handler", "misc"}
VAGUE_WORDS |= {f"{word}s" for word in VAGUE_WORDS}
VAGUE_MODULE_ENDING = re.compile(r"_(v\d+|new|compat)$")
VAGUE_CLASS_ENDING = re.compile(r"(V\d+|New|Compat)$")
CLASS_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*")
# Written in halves, or this file would report itself.
UNFINISHED = re.compile("TO" + "DO|FIX" + "ME|NotImplemented" + "Error")
HOME_PATH = re.compile(r"(?<![\w.])/(?:home|Users)/[\w.-]+/|(?<![\w.])/ro" + r"ot/")


@dataclass(frozen=True, slots=True)
class Problem:
    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def problems(root: Path) -> Iterator[Problem]:
    """Every breach under `root`, in a stable order, with paths relative to it."""
    for path in sorted(_files(root)):
        relative = path.relative_to(root)
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            yield Problem(relative, 1, f"{size} bytes; a file has at most {FILE_BYTES_MAX}")
            continue
        text = _text(path)
        if text is None:
            continue
        yield from _home_paths(relative, text)
        if path.suffix == ".py" and relative.parts[0] in CODE_FOLDERS:
            yield from _module_problems(relative, text)


def _files(folder: Path) -> Iterator[Path]:
    """Files a commit could hold; hidden folders are left out, save the one CI runs."""
    for path in folder.iterdir():
        if path.is_symlink():
            continue
        if path.is_file():
            yield path
        elif path.name not in SKIPPED_FOLDERS and (path.name[0] != "." or path.name == ".ci"):
            yield from _files(path)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def _home_paths(path: Path, text: str) -> Iterator[Problem]:
    for number, line in enumerate(text.splitlines(), start=1):
        if found := HOME_PATH.search(line):
            yield Problem(path, number, f"{found[0]} is a path of one machine")


def _module_problems(path: Path, text: str) -> Iterator[Problem]:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield Problem(path, error.lineno or 1, f"does not parse: {error.msg}")
        return
    yield from _line_problems(path, text.splitlines())
    yield from _module_name_problems(path)
    if path.parts[0] == "src":
        yield from _docstring_problems(path, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _function_problems(path, node)
        elif isinstance(node, ast.ClassDef):
            yield from _class_problems(path, node)


def _line_problems(path: Path, lines: list[str]) -> Iterator[Problem]:
    if len(lines) > MODULE_LINES_MAX:
        message = f"{len(lines)} lines; a module has at most {MODULE_LINES_MAX}"
        yield Problem(path, MODULE_LINES_MAX + 1, message)
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_COLUMNS_MAX:
            message = f"{len(line)} columns; a line has at most {LINE_COLUMNS_MAX}"
            yield Problem(path, number, message)
        if found := UNFINISHED.search(line):
            yield Problem(path, number, f"{found[0]}: finish it, or write it down elsewhere")


def _module_name_problems(path: Path) -> Iterator[Problem]:
    for name in (*path.parts[:-1], path.stem):
        if VAGUE_WORDS & set(name.split("_")) or VAGUE_MODULE_ENDING.search(name):
            yield Problem(path, 1, f"the name {name} does not say what is inside")


def _docstring_problems(path: Path, tree: ast.Module) -> Iterator[Problem]:
    docstring = ast.get_docstring(tree, clean=False)
    if docstring is None or tree.body[0].lineno != 1 or not docstring.split("\n", 1)[0].strip():
        yield Problem(path, 1, "the first line must be a docstring that says what this room is for")


def _function_problems(
    path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[Problem]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > FUNCTION_LINES_MAX:
        message = f"{node.name} has {lines} lines; a function has at most {FUNCTION_LINES_MAX}"
        yield Problem(path, node.lineno, message)


def _class_problems(path: Path, node: ast.ClassDef) -> Iterator[Problem]:
    words = {word.lower() for word in CLASS_WORD.findall(node.name)}
    if VAGUE_WORDS & words or VAGUE_CLASS_ENDING.search(node.name):
        yield Problem(path, node.lineno, f"the name {node.name} does not say what it is")
    if path.parts[:3] == ("src", "noetl", "ports") and _is_protocol(node):
        methods = sum(
            isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) for item in node.body
        )
        if methods > PORT_METHODS_MAX:
            message = f"{node.name} has {methods} methods; past {PORT_METHODS_MAX} it is two ports"
            yield Problem(path, node.lineno, message)


def _is_protocol(node: ast.ClassDef) -> bool:
    bare = [item.value if isinstance(item, ast.Subscript) else item for item in node.bases]
    names = [item.attr if isinstance(item, ast.Attribute) else item for item in bare]
    return any(
        name == "Protocol" or (isinstance(name, ast.Name) and name.id == "Protocol")
        for name in names
    )


def main() -> int:
    found = list(problems(Path(__file__).resolve().parent.parent))
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
