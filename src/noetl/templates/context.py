"""Jinja's context without its copies: names are looked up where they are."""

from typing import Any

from jinja2 import Environment
from jinja2.nodes import EvalContext
from jinja2.runtime import Context
from jinja2.utils import missing

from noetl.templates.lookup import MISSING
from noetl.templates.rendering import Rendering


class RenderContext(Context):
    """What a compiled template gets: names from the bindings, and the render it belongs to."""

    def __init__(
        self, environment: Environment, evaluation: EvalContext, rendering: Rendering
    ) -> None:
        # Not Jinja's own __init__: it would copy and build what no template of ours can reach.
        self.parent = {}
        self.vars = {}
        self.environment = environment
        self.eval_ctx = evaluation
        self.exported_vars = set()
        self.name = None
        self.globals_keys = set()
        self.blocks = {}
        self.rendering = rendering
        self._find = rendering.bindings.find

    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        found = self._find(key)
        return missing if found is MISSING else self.rendering.seen(found)
