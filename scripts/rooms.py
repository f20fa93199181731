"""Print the map of rooms: every module with the first line of its docstring.

With --write the map is put into ARCHITECTURE.md; with --check a stale map there is an error.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

BEGIN = "<!-- rooms:begin -->"
END = "<!-- rooms:end -->"


class MapProblem(Exception):
    """The map cannot be drawn or kept; the message says what to do."""


def draw(package: Path) -> str:
    """The map of one package: a line per module, all descriptions in one column."""
    rows = list(_rows(package, depth=0))
    width = max(len(label) for label, _ in rows) + 2
    return "".join(f"{label:<{width}}{text}".rstrip() + "\n" for label, text in rows)


def _rows(folder: Path, *, depth: int) -> Iterator[tuple[str, str]]:
    indent = "  " * depth
    yield f"{indent}{folder.name}/", _first_line(folder / "__init__.py")
    for module in sorted(folder.glob("*.py")):
        if module.name != "__init__.py":
            yield f"{indent}  {module.name}", _first_line(module)
    for room in sorted(folder.iterdir()):
        if (room / "__init__.py").is_file():
            yield from _rows(room, depth=depth + 1)


def _first_line(module: Path) -> str:
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))
    return docstring.split("\n", 1)[0] if docstring else ""


def place(page: str, drawing: str) -> str:
    """`page` with the map between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise MapProblem(f"ARCHITECTURE.md needs the lines {BEGIN} and {END} around the map")
    return f"{before}{BEGIN}\n\n```text\n{drawing}```\n\n{END}{after}"


def write(root: Path) -> None:
    page = _read_page(root)
    _page_path(root).write_text(place(page, draw(_package(root))), encoding="utf-8")


def check(root: Path) -> None:
    page = _read_page(root)
    if place(page, draw(_package(root))) != page:
        raise MapProblem("the map of rooms in ARCHITECTURE.md is stale; run: make fix")


def _package(root: Path) -> Path:
    return root / "src" / "noetl"


def _page_path(root: Path) -> Path:
    return root / "ARCHITECTURE.md"


def _read_page(root: Path) -> str:
    try:
        return _page_path(root).read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"ARCHITECTURE.md is missing; write it with the lines {BEGIN} and {END} in it"
        raise MapProblem(message) from None


def main() -> int:
    parser = argparse.ArgumentParser(description="The map of rooms.")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help="put the map into ARCHITECTURE.md")
    action.add_argument("--check", action="store_true", help="fail when the map there is stale")
    chosen = parser.parse_args()
    root = Path(__file__).resolve().parent.parent
    try:
        if chosen.write:
            write(root)
        elif chosen.check:
            check(root)
        else:
            sys.stdout.write(draw(_package(root)))
    except MapProblem as problem:
        print(f"rooms: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
