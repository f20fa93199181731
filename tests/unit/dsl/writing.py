"""Short playbooks for tests: give the part that matters, get the rest written around it."""

from textwrap import dedent, indent

from noetl.domain.playbook.model import Playbook, Step
from noetl.domain.playbook.task import Task
from noetl.dsl.check import check

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: demo, path: demo/one}\n"


def with_steps(steps: str, more: str = "") -> str:
    """A playbook with these steps, and these other keys at the root."""
    return f"{HEAD}{dedent(more)}workflow:\n{indent(dedent(steps).strip(), '  ')}\n"


def with_tool(tool: str, more: str = "") -> str:
    """A playbook whose only step has this tool."""
    return with_steps(f"- step: start\n  tool:\n{indent(dedent(tool).strip(), '    ')}", more)


def playbook(text: str) -> Playbook:
    checked = check(text)
    assert checked.playbook is not None, checked.problems
    return checked.playbook


def steps(text: str, more: str = "") -> list[Step]:
    return list(playbook(with_steps(text, more)).steps.values())


def step(text: str, more: str = "") -> Step:
    return steps(text, more)[0]


def task(tool: str, more: str = "") -> Task:
    (only,) = playbook(with_tool(tool, more)).steps.values()
    return only.tasks[0]


def said(text: str | bytes) -> list[str]:
    """`error: message; fix`, without positions."""
    return [f"{each.severity}: {each.message}; {each.fix}" for each in check(text).problems]


def places(text: str | bytes) -> list[tuple[int, int, str]]:
    return [(each.line, each.column, each.path) for each in check(text).problems]
