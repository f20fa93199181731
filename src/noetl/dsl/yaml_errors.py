"""Words for text that is not YAML: what the reader stumbled over, and what usually caused it."""

import re
from collections.abc import Sequence

import yaml

from noetl.dsl.compose import BARE_TEMPLATE, QUOTE_TEMPLATE
from noetl.dsl.problems import Problem

_BARE_TEMPLATE = re.compile(r"(?:[:\-]\s+|^\s*)\{[{%]")

_ADVICE = (
    (
        "mapping values are not allowed",
        "a value with `: ` in it needs quotes; or the line before it is indented wrongly",
    ),
    ("cannot start any token", "put the value in quotes: this character has a meaning in YAML"),
    ("unexpected end of stream", "close the quote or bracket that was opened"),
    ("did not find expected ',' or", "close the bracket, or put a comma between the values"),
    ("unknown escape character", "use single quotes, or write \\\\ for a backslash"),
    (
        "expected '-' indicator",
        "indent this line like the items of the list, or end the list first",
    ),
    ("expected key", "indent this line like the keys above it"),
    ("could not find expected ':'", "write `key: value`; a text over several lines needs `|`"),
)


def explain(error: yaml.MarkedYAMLError, lines: Sequence[str]) -> Problem:
    mark = error.problem_mark or error.context_mark
    if error.problem is not None and "end of stream" in error.problem:
        mark = error.context_mark or mark  # where it began says more than where the file ends
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    written = lines[line - 1] if line <= len(lines) else ""
    reason = error.problem or "it ends too early"
    if written[column - 1 : column] == "\t" or written[: column - 1].lstrip(" ").startswith("\t"):
        message = "a tab stands where YAML allows only spaces"
        return Problem(line, column, "", message, "indent with spaces")
    bare = _line_with_bare_template(lines, error, line)
    if bare is not None:
        start = lines[bare - 1].index("{") + 1
        return Problem(bare, start, "", BARE_TEMPLATE, QUOTE_TEMPLATE)
    context = f" {error.context}" if error.context else ""
    message = f"this is not YAML: {reason}{context}"
    return Problem(line, column, "", message, _advice(reason))


def _line_with_bare_template(
    lines: Sequence[str], error: yaml.MarkedYAMLError, line: int
) -> int | None:
    """A template without quotes is found out at its end, or in the line after it."""
    first = max(1, line - 1)
    if error.context_mark is not None and error.context_mark.line + 1 < first:
        first = max(error.context_mark.line + 1, line - 1)
    for number in range(min(line, len(lines)), first - 1, -1):
        if _BARE_TEMPLATE.search(lines[number - 1]):
            return number
    return None


def _advice(reason: str) -> str:
    for part, advice in _ADVICE:
        if part in reason:
            return advice
    return "compare the indentation, quotes and brackets around this place"
