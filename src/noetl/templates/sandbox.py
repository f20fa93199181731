"""Jinja's environment with every way out closed: only data has names, only our table is called."""

from datetime import datetime
from typing import Any

from jinja2 import ChainableUndefined, Undefined, pass_context
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from noetl.templates.catalogue import check_table, filter_table
from noetl.templates.context import RenderContext
from noetl.templates.errors import TemplateRefused
from noetl.templates.lookup import MISSING, look_up
from noetl.templates.operators import calculate
from noetl.templates.secret import Secret

_LOOP_NAMES = frozenset(
    {
        *("depth", "depth0", "first", "index", "index0", "last", "length"),
        *("nextitem", "previtem", "revindex", "revindex0"),
    }
)
_TIME_NAMES = frozenset({"year", "month", "day", "hour", "minute", "second", "microsecond"})


@pass_context
def _text(context: RenderContext, value: Any) -> str:
    return context.rendering.text(value)


class Sandbox(ImmutableSandboxedEnvironment):
    """One for renders that reveal secrets and one for all others: compiled code knows its own."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self, *, reveals: bool) -> None:
        # Not optimized: folding constants would run filters before there is a budget.
        super().__init__(
            undefined=ChainableUndefined,
            finalize=_text,
            optimized=False,
            keep_trailing_newline=True,
            cache_size=0,
        )
        self._reveals = reveals
        self.globals.clear()
        self.filters.clear()
        self.filters.update(filter_table())
        self.tests.clear()
        self.tests.update(check_table())

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        found = look_up(obj, argument)
        if found is MISSING:
            return self._elsewhere(obj, argument)
        return found.reveal() if self._reveals and isinstance(found, Secret) else found

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        assert isinstance(context, RenderContext)
        return calculate(context.rendering, operator, left, right)

    def call(self, *_arguments: Any, **_named: Any) -> Any:
        raise TemplateRefused("calls a value; only functions, methods and filters can be called")

    def call_filter(self, name: str, *arguments: Any, **named: Any) -> Any:
        """How `map('upper')` finds a filter: not under the names that only the grammar uses."""
        if ":" in name:
            raise TemplateRefused(f"there is no filter called {name!r}")
        return super().call_filter(name, *arguments, **named)

    def _elsewhere(self, obj: Any, name: Any) -> Any:
        """Names of the few things in a template that are not data."""
        if isinstance(name, str):
            if name.startswith("__"):
                raise TemplateRefused(f"{name} is not data; templates see the keys of values only")
            if isinstance(obj, Undefined):
                return obj
            if _has_name(obj, name):
                return getattr(obj, name)
        elif isinstance(obj, Undefined):
            return obj
        return self.undefined(obj=obj, name=name)


def _has_name(obj: Any, name: str) -> bool:
    if isinstance(obj, datetime):
        return name in _TIME_NAMES
    if isinstance(obj, LoopContext):
        return name in _LOOP_NAMES
    if isinstance(obj, Namespace):
        return not name.startswith("_") and hasattr(obj, name)
    # groupby gives pairs that are called by name
    return name in ("grouper", "list") and name in getattr(type(obj), "_fields", ())
