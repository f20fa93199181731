"""Names in templates that nothing gives: they would be empty without a word.

A request may bring any name of the workload. So a bare name that the playbook does not give is a
mistake only when it looks like one that it does; the others are what the playbook asks for.
"""

from collections.abc import Iterable

from noetl.domain.playbook.model import Playbook
from noetl.domain.playbook.wording import choices, misspelt, nearest, shown
from noetl.dsl.asked import Asked, Called, asked_by
from noetl.dsl.language.names import (
    ENGINE_NAMES,
    FILTERS,
    FILTERS_OF_OTHERS,
    TESTS,
    WORKLOAD_NAMES,
)
from noetl.dsl.nodes import Mapping, Node, Scalar
from noetl.dsl.problems import Problems
from noetl.dsl.provided import Provided, provided_by
from noetl.dsl.templates import template_texts, values_of

_RENDERED = ("keychain", "workbook", "workflow")
_NOT_RENDERED = ("assert", "desc", "description", "retry_when")
_INPUT = ("input", "args")
_CALLABLE = {"filter": FILTERS, "test": TESTS}
_FROM_REQUEST = ("workload", "ctx")
_LONG_MIN = 5
_LONG_NAMES = frozenset(name for name in ENGINE_NAMES if len(name.strip("_")) >= _LONG_MIN)
"""Short ones, such as `now`, are too near to too much."""

_HOMES = {
    "iter": "use the loop's `iterator`, or `set` it",
    "steps": "use the name of a step",
    "keychain": "add it to `keychain`",
}


def check_names(root: Node, playbook: Playbook, problems: Problems) -> tuple[str, ...]:
    """Warn of names that are mistakes; give those that only a request can bring."""
    check = _Check(provided_by(playbook), problems)
    if isinstance(root, Mapping):
        check.document(root)
    return tuple(sorted(check.asks_for))


class _Check:
    def __init__(self, provided: Provided, problems: Problems) -> None:
        self._provided = provided
        self._problems = problems
        self._compared: dict[tuple[str, str], str | None] = {}
        self.asks_for: set[str] = set()

    def document(self, root: Mapping) -> None:
        workload = root.get("workload")
        if workload is not None:
            for node in template_texts(workload):
                self._in_workload(node)
        for part in values_of(root, _RENDERED):
            for node in template_texts(part, (*_NOT_RENDERED, *_INPUT)):
                self._in_place(node, self._provided.bare)
            for given in values_of(part, _INPUT):
                for node in template_texts(given):
                    self._in_place(node, self._provided.before_input)

    def _in_workload(self, node: Scalar) -> None:
        """It is rendered before there is anything else, itself included."""
        names, calls = asked_by(node.text)
        for asked in names:
            if asked.root not in WORKLOAD_NAMES:
                what = f"{{{{ {shown(asked.root)} }}}}"
                message = f"{what} is not known when the workload is rendered: it is empty there"
                fix = (
                    f"write the template where {what} is used; here there are env, job and payload"
                )
                self._say(node, asked.line, message, fix)
        self._check_calls(node, calls)

    def _in_place(self, node: Scalar, known: frozenset[str]) -> None:
        names, calls = asked_by(node.text)
        for asked in names:
            parts = self._provided.parts.get(asked.root)
            if parts is not None and asked.part is not None:
                if asked.part not in parts:
                    self._missing_part(node, asked)
            elif asked.root not in known:
                self._missing_name(node, asked)
        self._check_calls(node, calls)

    def _missing_name(self, node: Scalar, asked: Asked) -> None:
        close = self._close("", asked.root)
        if close is None:
            self.asks_for.add(asked.root)
            return
        message = f"nothing in this playbook gives {{{{ {shown(asked.root)} }}}}: it is empty"
        self._say(node, asked.line, message, _fix(close, _otherwise(asked.root)))

    def _missing_part(self, node: Scalar, asked: Asked) -> None:
        part = str(asked.part)
        close = self._close(asked.root, part)
        if close is None and asked.root in _FROM_REQUEST:
            self.asks_for.add(part)
            return
        if close is None and asked.root == "iter" and not self._provided.has_loops:
            return  # a part of a playbook, or a step that others use
        path = f"{asked.root}.{shown(part)}"
        message = f"nothing in this playbook gives {{{{ {path} }}}}: it is empty"
        home = _HOMES.get(asked.root)
        otherwise = _otherwise(path) if home is None else home
        self._say(node, asked.line, message, _fix(close and f"{asked.root}.{close}", otherwise))

    def _close(self, root: str, name: str) -> str | None:
        """What was probably meant; each name is compared with all others once."""
        if (root, name) not in self._compared:
            provided = self._provided
            known = (provided.parts[root],) if root else (provided.own, _LONG_NAMES)
            slips = (misspelt(name, names - {name}) for names in known)
            self._compared[root, name] = next((each for each in slips if each is not None), None)
        return self._compared[root, name]

    def _check_calls(self, node: Scalar, calls: Iterable[Called]) -> None:
        for called in calls:
            known = _CALLABLE[called.kind]
            if called.name not in known:
                message = f"templates have no {called.kind} {shown(called.name)!r}"
                self._say(node, called.line, message, _callable_instead(called.name, known))

    def _say(self, node: Scalar, line: int, message: str, fix: str) -> None:
        where = f" (line {line} of the text)" if "\n" in node.text.strip() else ""
        self._problems.warning(node, f"{message}{where}", fix)


def _callable_instead(name: str, known: frozenset[str]) -> str:
    if name in FILTERS_OF_OTHERS:
        return FILTERS_OF_OTHERS[name]
    close = nearest(name, known)
    return f"use {choices(sorted(known))}" if close is None else f"did you mean {close!r}?"


def _otherwise(path: str) -> str:
    return f"add it to `workload`, or say what it is without: {{{{ {shown(path)} | default('') }}}}"


def _fix(close: str | None, otherwise: str) -> str:
    return otherwise if close is None else f"did you mean {close!r}? If not, {otherwise}"
