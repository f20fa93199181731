"""What is wrong with a playbook, where, and how to fix it."""

from collections.abc import Callable

import msgspec

from noetl.domain.playbook.rules import Finding, Severity, Spot
from noetl.dsl.nodes import Node

PROBLEMS_MAX = 200
"""Past this many, reading on helps nobody."""


class Problem(msgspec.Struct, frozen=True, order=True):
    """An error keeps a playbook from running; a warning only says that it may not do what it says.

    Lines and columns count from 1; `path` leads to the value: `workflow[2].tool.url`.
    """

    line: int
    column: int
    path: str
    message: str
    fix: str
    severity: Severity = "error"


IsOtherKind = Callable[[str], bool]
"""Whether a package besides ours offers a tool of that kind; asked only about unknown ones."""


def _no_other_kinds(_kind: str) -> bool:
    return False


class Problems:
    """Collects instead of stopping at the first, and knows where each part of the model stands."""

    def __init__(self, is_other_kind: "IsOtherKind | None" = None) -> None:
        self.is_other_kind = is_other_kind or _no_other_kinds
        self._found: dict[tuple[int, int, str], Problem] = {}
        self._spots: dict[Spot, Node] = {}
        self._more = False

    def mark(self, spot: Spot, node: Node) -> None:
        """Remember where something of the model came from, for findings about its meaning."""
        self._spots[spot] = node

    def find(self, finding: Finding, otherwise: Node) -> None:
        node = self._spots.get(finding.spot, otherwise)
        self._add(node, finding.message, finding.fix, finding.severity)

    def error(self, node: Node, message: str, fix: str) -> None:
        self._add(node, message, fix, "error")

    def warning(self, node: Node, message: str, fix: str) -> None:
        self._add(node, message, fix, "warning")

    def _add(self, node: Node, message: str, fix: str, severity: Severity) -> None:
        self.record(Problem(node.line, node.column, node.path, message, fix, severity))

    def record(self, problem: Problem) -> None:
        key = (problem.line, problem.column, problem.message)
        if key in self._found:
            return  # an anchor used twice has one mistake, not two
        if len(self._found) < PROBLEMS_MAX:
            self._found[key] = problem
        else:
            self._more = True

    @property
    def has_errors(self) -> bool:
        return any(problem.severity == "error" for problem in self._found.values())

    def sorted(self) -> tuple[Problem, ...]:
        """In the order of the text."""
        listed = sorted(self._found.values())
        if self._more and listed:
            last = listed[-1]
            message = f"there are more than {PROBLEMS_MAX} problems; only these are shown"
            fix = "fix these and check again"
            listed.append(Problem(last.line, last.column, "", message, fix))
        return tuple(listed)
