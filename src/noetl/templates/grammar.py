"""Which parts of Jinja's grammar a template may use, and what they turn into before compiling."""

import difflib
from collections.abc import Iterable

from jinja2 import Environment, nodes
from jinja2.visitor import NodeTransformer

from noetl.templates.catalogue import COMPARISONS
from noetl.templates.errors import TemplateInvalid, TemplateRefused, TemplateTooLarge
from noetl.templates.functions import FUNCTIONS, METHODS
from noetl.templates.limits import BRACKET_DEPTH_MAX, EXPRESSION_DEPTH_MAX, STATEMENT_DEPTH_MAX

_STATEMENTS = (nodes.If, nodes.For, nodes.With)
_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Assign, nodes.NSRef, *_STATEMENTS),
    *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.Keyword),
    *(nodes.CondExpr, nodes.Filter, nodes.Test, nodes.Call, nodes.Getattr, nodes.Getitem),
    *(nodes.Slice, nodes.Concat, nodes.Compare, nodes.Operand, nodes.BinExpr, nodes.UnaryExpr),
)
_NAMES_OF_NODES: dict[type[nodes.Node], str] = {
    nodes.Macro: "macro",
    nodes.CallBlock: "call",
    nodes.FilterBlock: "filter",
    nodes.AssignBlock: "set … endset",
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "from … import",
    nodes.Extends: "extends",
    nodes.Block: "block",
}


def check_brackets(source: str, environment: Environment) -> None:
    """Before parsing: how deep the parser can go must not depend on how deep its caller is."""
    if sum(map(source.count, "([{")) <= BRACKET_DEPTH_MAX:
        return
    depth = 0
    for line, kind, text in environment.lex(source):
        if kind == "operator":
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth > BRACKET_DEPTH_MAX:
            limit = f"BRACKET_DEPTH_MAX = {BRACKET_DEPTH_MAX}"
            message = f"brackets are nested deeper than {limit}; take it apart with set"
            raise TemplateTooLarge(message).on_line(line)


def check(tree: nodes.Template, filter_names: Iterable[str], test_names: Iterable[str]) -> None:
    """Refuse what is not allowed, too deep or unknown, before any of it is compiled."""
    offered = {nodes.Filter: ("filter", set(filter_names)), nodes.Test: ("test", set(test_names))}
    waiting: list[tuple[nodes.Node, int, int]] = [(tree, 0, 0)]
    while waiting:
        node, expressions, statements = waiting.pop()
        _check_kind(node)
        if isinstance(node, (nodes.Filter, nodes.Test)):
            word, names = offered[type(node)]
            _check_name(word, node.name, names, node.lineno)
        expressions += isinstance(node, nodes.Expr)
        statements += isinstance(node, _STATEMENTS)
        _check_depth(node, expressions, statements)
        waiting += [(child, expressions, statements) for child in node.iter_child_nodes()]


def rewrite(tree: nodes.Template) -> nodes.Template:
    """Calls, comparisons, joins, slices and loops become entries of the catalogue."""
    rewritten: nodes.Template = _Rewriter().visit(tree)
    return rewritten


def lone_expression(tree: nodes.Template) -> nodes.Expr | None:
    """The expression of `{{ … }}` with nothing but white space around it."""
    parts = [part for node in tree.body for part in getattr(node, "nodes", [node])]
    parts = [part for part in parts if not _is_blank(part)]
    if len(parts) == 1 and isinstance(parts[0], nodes.Expr):
        return None if isinstance(parts[0], nodes.TemplateData) else parts[0]
    return None


def passes_on(node: nodes.Node) -> bool:
    """Whether an expression can only give what is in the bindings, and makes nothing itself."""
    if isinstance(node, (nodes.Name, nodes.Const, nodes.Compare, nodes.Not, nodes.Test)):
        return True
    if isinstance(node, (nodes.Getattr, nodes.Getitem)):
        return passes_on(node.node) and not isinstance(getattr(node, "arg", None), nodes.Slice)
    if isinstance(node, nodes.Filter) and node.name in ("default", "d"):
        return all(passes_on(child) for child in node.iter_child_nodes())
    if isinstance(node, (nodes.And, nodes.Or, nodes.CondExpr)):
        return all(passes_on(child) for child in node.iter_child_nodes())
    return False


def _is_blank(node: nodes.Node) -> bool:
    return isinstance(node, nodes.TemplateData) and not node.data.strip()


def _check_kind(node: nodes.Node) -> None:
    if isinstance(node, nodes.For) and node.recursive:
        raise TemplateRefused("a loop cannot be recursive").on_line(node.lineno)
    if not isinstance(node, _ALLOWED):
        name = _NAMES_OF_NODES.get(type(node), type(node).__name__)
        message = f"{{% {name} %}} is not available in playbooks; use if, for, set and with"
        raise TemplateRefused(message).on_line(node.lineno)


def _check_name(word: str, name: str, offered: Iterable[str], line: int) -> None:
    known = [each for each in offered if ":" not in each]
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
        raise TemplateInvalid(f"there is no {word} called {name!r}; {advice}").on_line(line)


def _check_depth(node: nodes.Node, expressions: int, statements: int) -> None:
    if expressions > EXPRESSION_DEPTH_MAX:
        limit = f"EXPRESSION_DEPTH_MAX = {EXPRESSION_DEPTH_MAX}"
        message = f"the expression is nested deeper than {limit}; take it apart with set"
        raise TemplateTooLarge(message).on_line(node.lineno)
    if statements > STATEMENT_DEPTH_MAX:
        limit = f"STATEMENT_DEPTH_MAX = {STATEMENT_DEPTH_MAX}"
        message = f"statements are nested deeper than {limit}; use fewer levels"
        raise TemplateTooLarge(message).on_line(node.lineno)


class _Rewriter(NodeTransformer):
    """Visits children first, so that what it makes is made of rewritten parts."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _entry("grammar:counted", node.iter)
        return node

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
        target = node.node
        subject: nodes.Expr
        if isinstance(target, nodes.Name):
            _check_name("function", target.name, FUNCTIONS, node.lineno)
            subject, name = nodes.Const(None, lineno=node.lineno), f"call:{target.name}"
        elif isinstance(target, nodes.Getattr):
            _check_name("method", target.attr, METHODS, node.lineno)
            subject, name = self.visit(target.node), f"method:{target.attr}"
        else:
            message = "calls a value; only functions, methods and filters can be called"
            raise TemplateRefused(message).on_line(node.lineno)
        call = _entry(name, subject)
        call.args = [self.visit(argument) for argument in node.args]
        call.kwargs = [self.visit(argument) for argument in node.kwargs]
        call.dyn_args = node.dyn_args and self.visit(node.dyn_args)
        call.dyn_kwargs = node.dyn_kwargs and self.visit(node.dyn_kwargs)
        return call

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        """`a < b < c` is `a < b and b < c`, as in Python."""
        self.generic_visit(node)
        left: nodes.Expr = node.expr
        whole: nodes.Expr | None = None
        for operand in node.ops:
            assert operand.op in COMPARISONS
            part = _entry(f"compare:{operand.op}", left, operand.expr)
            whole = part if whole is None else nodes.And(whole, part, lineno=node.lineno)
            left = operand.expr
        assert whole is not None
        return whole

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _entry("grammar:join", nodes.List(node.nodes, lineno=node.lineno))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        empty = nodes.Const(None, lineno=node.lineno)
        return _entry("grammar:slice", node.node, *(bound or empty for bound in bounds))

    def visit_Mod(self, node: nodes.Mod) -> nodes.Node:
        # The values of `'%s %s' % (a, b)` are the one tuple that has to stay one.
        values = node.right if isinstance(node.right, nodes.Tuple) else None
        self.generic_visit(node)
        if values is not None:
            assert isinstance(node.right, nodes.List)
            node.right = nodes.Tuple(node.right.items, "load", lineno=node.lineno)
        return node

    def visit_Name(self, node: nodes.Name) -> nodes.Node:
        # To Jinja `self` is the template; to an author it is a name like any other.
        if node.name == "self" and node.ctx == "load":
            return _entry("grammar:name", nodes.Const("self", lineno=node.lineno))
        return node

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        """Values are lists, as in JSON; only the targets of `for` and `set` are tuples."""
        self.generic_visit(node)
        return node if node.ctx == "store" else nodes.List(node.items, lineno=node.lineno)


def _entry(name: str, subject: nodes.Node, *arguments: nodes.Expr) -> nodes.Filter:
    assert isinstance(subject, nodes.Expr)
    return nodes.Filter(subject, name, list(arguments), [], None, None, lineno=subject.lineno)
