"""Rendering for one row: what a template needs is fetched, and then it is asked again."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from noetl.dsl.language.shapes import duration_seconds
from noetl.pipeline.failures import failed
from noetl.pipeline.names import Names
from noetl.pipeline.plan import has_template
from noetl.pipeline.references import opened, references_in
from noetl.pipeline.workshop import Workshop
from noetl.templates.bindings import Bindings
from noetl.templates.chance import Chance
from noetl.templates.errors import Need
from noetl.templates.recorded import Fetched
from noetl.templates.render import Judgement, Needs, Rendered, Verdict, judge, render, render_code
from noetl.templates.rendering import ATOMS
from noetl.templates.secret import masked
from noetl.templates.table_rows import as_lists, has_tables

Source = Callable[[], Bindings]
"""The names at this moment: asked for again after something was fetched."""

Answer = TypeVar("Answer", Rendered, Judgement)


class Needed(Protocol):
    """Brings what templates need into the names."""

    @property
    def fetched(self) -> Fetched:
        """Where payloads are from then on."""
        ...

    async def fetch(self, need: Need, evaluation: "Evaluation") -> None:
        """What is needed may be written with templates itself."""
        ...


class Evaluation:
    """Whoever fetches is handed the evaluation and keeps none: a row must not hold itself, or all
    that it has seen would stay until somebody looks for cycles."""

    __slots__ = ("_fetched", "_names", "_needed", "_workshop")

    def __init__(self, workshop: Workshop, needed: Needed, names: Names) -> None:
        self._workshop = workshop
        self._needed = needed
        self._fetched = needed.fetched
        self._names = names

    @property
    def may_have_tables(self) -> bool:
        """Whether anything in sight may be the rows of a large table."""
        return bool(self._fetched) or self._names.has_stored

    async def value(
        self, value: Any, names: Source, *, reveals: bool = False, tables: bool = False
    ) -> Any:
        """Plain data: what stands for a payload is that payload; `tables`: except that large ones
        may stay what they are. Raises TemplateError."""
        if not has_template(value):
            return value
        return await self.rendered(value, names, reveals=reveals, tables=tables)

    async def rendered(
        self, value: Any, names: Source, *, reveals: bool = False, tables: bool = False
    ) -> Any:
        """The same for a value that is known to hold templates."""
        answer = render(value, names(), reveal_secrets=reveals)
        if isinstance(answer, Needs):
            answer = await self._answer(
                lambda bindings: render(value, bindings, reveal_secrets=reveals), names, answer
            )
        whole = answer.value
        if type(whole) not in ATOMS and (self._names.may_refer or self.may_have_tables):
            whole = await self.whole(whole, tables=tables)
        return masked(whole) if self._names.has_secrets and not reveals else whole

    async def outside(self, value: Any) -> Any:
        """With what is visible outside of tasks, secrets in the open."""
        return await self.value(value, self._names.base, reveals=True)

    async def code(self, code: str, names: Source) -> str:
        rendered = await self._answer(lambda bindings: render_code(code, bindings), names)
        return str(rendered.value)

    async def holds(self, when: str | bool, names: Source) -> bool:
        """A guard that raises does not hold."""
        if isinstance(when, bool):
            return when
        judgement = judge(when, names())
        if isinstance(judgement, Needs):
            ask = partial(judge, when)
            judgement = await self._answer(ask, names, judgement)
        return judgement.verdict is Verdict.HOLDS

    async def number(self, written: Any, names: Source, what: str) -> float | None:
        """A number, or text such as `30s`; None when it comes to nothing."""
        value = await self.value(written, names)
        if value is None or value == "":
            return None
        number = duration_seconds(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise failed(
                "schema", f"{what} is {value!r}, which is not a number; check its template"
            )
        return float(number)

    def fraction(self) -> float:
        return Chance(self._workshop.entropy()).fraction(1)

    async def whole(self, value: Any, *, tables: bool = False) -> Any:
        """The value with every payload that it stands for inside."""
        if type(value) in ATOMS:
            return value
        if self._names.may_refer and (references := references_in(value)):
            for payload in sorted({each.payload for each in references}):
                await self._needed.fetch(Need(payload, ()), self)
            value = opened(value, self._fetched)
        if tables or not self.may_have_tables or not has_tables(value):
            return value
        return await asyncio.to_thread(as_lists, value)

    async def _answer(
        self,
        ask: Callable[[Bindings], Answer | Needs],
        names: Source,
        first: Needs | None = None,
    ) -> Answer:
        """`first` is what it said when it was asked already."""
        asked: set[Need] = set()
        answer: Answer | Needs | None = first
        while True:
            answer = ask(names()) if answer is None else answer
            if not isinstance(answer, Needs):
                return answer
            if answer.needs <= asked:
                message = f"{min(answer.needs, key=str).payload} was fetched and is needed again"
                raise failed("missing_reference", f"{message}; give the value to a tool instead")
            asked |= answer.needs
            for need in sorted(answer.needs, key=str):
                await self._needed.fetch(need, self)
            answer = None
