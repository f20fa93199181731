"""Template text, read once: checked, rewritten, compiled and kept by its source."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from types import TracebackType
from typing import Any, Final, NamedTuple

import jinja2
from jinja2 import Template, TemplateSyntaxError, Undefined, nodes
from jinja2.meta import find_undeclared_variables
from jinja2.nodes import EvalContext
from jinja2.runtime import Context

from noetl.templates import grammar
from noetl.templates.context import RenderContext
from noetl.templates.errors import (
    TemplateError,
    TemplateInvalid,
    TemplateTooLarge,
    shortened,
)
from noetl.templates.functions import FUNCTIONS
from noetl.templates.limits import TEMPLATE_CHARS_MAX
from noetl.templates.looks import Look, Piece, look_of, pieces_of
from noetl.templates.rendering import ATOMS, Rendering
from noetl.templates.sandbox import Sandbox
from noetl.templates.secret import revealed

TEMPLATES_KEPT_MAX = 4_096
_RESULT = "result"

# What an expression over the author's values can raise; anything else is our mistake.
RAISED: Final = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)

_SANDBOXES: Final = {reveals: Sandbox(reveals=reveals) for reveals in (False, True)}
_EVALUATIONS: Final = {
    reveals: EvalContext(sandbox, None) for reveals, sandbox in _SANDBOXES.items()
}


class Compiled(NamedTuple):
    """`root` is Jinja's generator: it yields text, or leaves the value of a lone expression."""

    source: str
    root: Callable[[Context], Iterator[str]]
    template: Template
    is_value: bool
    passes_on: bool
    look: Look | None  # all that it is
    pieces: tuple[Piece, ...] | None  # the same for text

    def evaluate(self, rendering: Rendering) -> Any:
        try:
            if self.look is not None:
                found = self.look.value(rendering, _SANDBOXES[rendering.reveals])
                return _passed_on(found, rendering)
            if self.pieces is not None:
                return _looked_up(self.pieces, rendering)
        except (TemplateError, *RAISED):
            pass  # Jinja raises it again, and knows the line
        reveals = rendering.reveals
        context = RenderContext(_SANDBOXES[reveals], _EVALUATIONS[reveals], rendering)
        return self._value(context) if self.is_value else self._text(context)

    def _value(self, context: RenderContext) -> Any:
        for _ in self.root(context):
            pass
        value, rendering = context.vars[_RESULT], context.rendering
        return _passed_on(value, rendering) if self.passes_on else rendering.plain(value)

    def _text(self, context: RenderContext) -> str:
        pieces = []
        for piece in self.root(context):
            context.rendering.budget.make(len(piece))
            pieces.append(piece)
        return "".join(pieces)

    def line_of(self, traceback: TracebackType | None) -> int | None:
        """Where in the template an exception came from."""
        line = None
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == self.template.filename:
                line = self.template.get_corresponding_lineno(traceback.tb_lineno)
            traceback = traceback.tb_next
        return line


def _looked_up(pieces: tuple[Piece, ...], rendering: Rendering) -> str:
    sandbox, text = _SANDBOXES[rendering.reveals], rendering.text
    joined = "".join(
        [
            piece if isinstance(piece, str) else text(piece.value(rendering, sandbox))
            for piece in pieces
        ]
    )
    rendering.budget.make(len(joined))
    return joined


def _passed_on(value: Any, rendering: Rendering) -> Any:
    """One of the author's own values: handed on as it is, not copied."""
    if type(value) in ATOMS:
        return value
    if isinstance(value, Undefined):
        return None
    passed = rendering.passed(value)
    return revealed(passed) if rendering.reveals else passed


@lru_cache(maxsize=TEMPLATES_KEPT_MAX)
def compiled(source: str, reveals: bool) -> Compiled:
    """Raises a TemplateError that names the line."""
    if len(source) > TEMPLATE_CHARS_MAX:
        message = (
            f"the template has {len(source):,} characters, the limit is {TEMPLATE_CHARS_MAX:,}"
        )
        raise TemplateTooLarge(message).locate(source, None)
    try:
        return _compile(source, _SANDBOXES[reveals])
    except TemplateError as error:
        raise error.locate(source, None) from None
    except TemplateSyntaxError as error:
        reason = shortened(error.message or "it cannot be read").rstrip(".")
        message = f"{reason}; check the brackets and quotes"
        raise TemplateInvalid(message).locate(source, error.lineno) from None
    except (RecursionError, MemoryError):
        raise TemplateTooLarge("the template is nested deeper than can be read").locate(
            source, None
        ) from None
    except (SyntaxError, ValueError):  # what Python says of a repeated keyword, or of a huge number
        raise TemplateInvalid("the template cannot be compiled").locate(source, None) from None


def _compile(source: str, sandbox: Sandbox) -> Compiled:
    grammar.check_brackets(source, sandbox)
    tree = sandbox.parse(source)
    grammar.check(tree, sandbox.filters, sandbox.tests)
    lone = grammar.lone_expression(tree)
    passes_on = lone is not None and grammar.passes_on(lone)
    look, pieces = look_of(lone), pieces_of(tree) if lone is None else None
    if lone is not None:
        target = nodes.Name(_RESULT, "store", lineno=lone.lineno)
        tree = nodes.Template([nodes.Assign(target, lone, lineno=lone.lineno)], lineno=1)
        tree.set_environment(sandbox)
    rewritten = grammar.rewrite(tree)
    rewritten.set_environment(sandbox)
    code = sandbox.compile(rewritten)
    template = Template.from_code(sandbox, code, {})
    return Compiled(
        source, template.root_render_func, template, lone is not None, passes_on, look, pieces
    )


@lru_cache(maxsize=TEMPLATES_KEPT_MAX)
def names_in(source: str) -> frozenset[str]:
    """The names that a template asks its bindings for; for checks before anything runs."""
    compiled(source, False)  # whose errors are better than Jinja's
    return frozenset(find_undeclared_variables(_SANDBOXES[False].parse(source)) - set(FUNCTIONS))
