"""Values with templates in them, turned into values: the front door of this room."""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import jinja2
import msgspec

from noetl.templates.bindings import Bindings
from noetl.templates.compiled import RAISED, compiled, names_in
from noetl.templates.errors import (
    Need,
    NeedsPayload,
    TemplateError,
    TemplateFailed,
    shortened,
)
from noetl.templates.lookup import MISSING
from noetl.templates.rendering import Rendering

_BRACES = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_FALSE_WORDS = frozenset({"", "false", "0", "none", "null"})


class Rendered(msgspec.Struct, frozen=True):
    value: Any


class Needs(msgspec.Struct, frozen=True):
    """Nothing was rendered: these have to be fetched first. Then ask again."""

    needs: frozenset[Need]


class Verdict(Enum):
    HOLDS = "holds"
    FAILS = "fails"
    RAISED = "raised"


class Judgement(msgspec.Struct, frozen=True):
    """What became of a guard. A guard that raised is neither true nor false: its caller decides."""

    verdict: Verdict
    error: TemplateError | None = None


_HOLDS: Final = Judgement(Verdict.HOLDS)
_FAILS: Final = Judgement(Verdict.FAILS)


def render(
    value: Any, bindings: Bindings | Mapping[str, Any], *, reveal_secrets: bool = False
) -> Rendered | Needs:
    """Render every template in a YAML value; everything else is returned as it is.

    Raises TemplateError. `reveal_secrets` is for workers, whose tools need the real values.
    """
    if isinstance(value, str) and not is_template(value):
        return Rendered(value)
    walk = _Walk(bindings, reveal_secrets)
    rendered = walk.value(value)
    return Needs(frozenset(walk.needs)) if walk.needs else Rendered(rendered)


def render_code(code: str, bindings: Bindings | Mapping[str, Any]) -> Rendered | Needs:
    """Program text, where doubled braces may be the program's own.

    Only what can be read as a template and uses a known name or a filter is replaced.
    """
    walk = _Walk(bindings, False)
    if "{%" in code and _is_readable(code):
        rendered = walk.value(code)
    else:
        rendered = _BRACES.sub(lambda found: walk.fragment(found[0]), code)
    return Needs(frozenset(walk.needs)) if walk.needs else Rendered(rendered)


def judge(when: Any, bindings: Bindings | Mapping[str, Any]) -> Judgement | Needs:
    """Evaluate a guard: a template, a YAML boolean, or nothing, which always holds."""
    if when is None:
        return _HOLDS
    try:
        rendered = render(when, bindings)
        if isinstance(rendered, Needs):
            return rendered
        return _HOLDS if truth(rendered.value) else _FAILS
    except NeedsPayload as error:  # the length of a value of which nothing is known
        return Needs(frozenset({error.need}))
    except TemplateError as error:
        return Judgement(Verdict.RAISED, error)


def truth(value: Any) -> bool:
    """True when either engine that playbooks were written for would say so."""
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE_WORDS
    return bool(value)


def _is_readable(source: str) -> bool:
    try:
        names_in(source)
    except TemplateError:
        return False
    return True


def is_template(text: str) -> bool:
    return "{{" in text or "{%" in text


class _Walk:
    """One pass over a value. Needs are collected, so that one round of fetching serves all."""

    def __init__(self, bindings: Bindings | Mapping[str, Any], reveals: bool) -> None:
        if not isinstance(bindings, Bindings):
            bindings = Bindings(layers=(bindings,))
        self._rendering = Rendering(bindings, reveals)
        self.needs: set[Need] = set()

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value) if is_template(value) else value
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return self._list(value)
        return self._rendering.seen(value)

    def _object(self, value: dict[Any, Any]) -> dict[Any, Any]:
        rendered = {}
        for key, item in value.items():
            try:
                rendered[key] = self.value(item)
            except TemplateError as error:
                error.path = (str(key), *error.path)
                raise
        return rendered

    def _list(self, value: list[Any]) -> list[Any]:
        rendered = []
        for at, item in enumerate(value):
            try:
                rendered.append(self.value(item))
            except TemplateError as error:
                error.path = (at, *error.path)
                raise
        return rendered

    def fragment(self, source: str) -> str:
        if not _is_readable(source):
            return source
        find = self._rendering.bindings.find
        if "|" not in source and all(find(name) is MISSING for name in names_in(source)):
            return source
        return self._rendering.text(self.value(source))

    def _text(self, source: str) -> Any:
        template = compiled(source, self._rendering.reveals)
        try:
            return template.evaluate(self._rendering)
        except NeedsPayload as error:
            self.needs.add(error.need)
            return None
        except TemplateError as error:
            raise error.locate(source, template.line_of(error.__traceback__)) from None
        except RAISED as error:
            failed = TemplateFailed(self._reason(error))
            line = template.line_of(error.__traceback__)
            raise failed.locate(source, line) from None

    def _reason(self, error: Exception) -> str:
        """Python's words may quote a value: they are left out where secrets are in the open."""
        if isinstance(error, MemoryError | RecursionError):
            return "the value is too large or too deep"
        advice = _ADVICE.get(type(error), "check the values it uses")
        if self._rendering.reveals:
            words = _WORDS.get(type(error), f"it cannot be evaluated ({type(error).__name__})")
            return f"{words}; {advice}"
        return f"{shortened(str(error))}; {advice}"


_ADVICE: dict[type[Exception], str] = {
    jinja2.UndefinedError: "give it a default, e.g. `| default(0)`",
    TypeError: "convert the values first, e.g. with `| int` or `| string`, or join text with `~`",
    ZeroDivisionError: "check the divisor first",
}
_WORDS: dict[type[Exception], str] = {
    jinja2.UndefinedError: "something in it has no value",
    TypeError: "its values do not go together",
    ZeroDivisionError: "it divides by zero",
}
