"""Where a step goes next, from plain data: a name, a list, or arcs with guards."""

from typing import cast

from noetl.domain.playbook.model import Arc, NoMatch, RouteMode, Router
from noetl.dsl.fields import read
from noetl.dsl.language.steps import ARC, NEXT, NEXT_SPEC
from noetl.dsl.nodes import Items, Node, Scalar
from noetl.dsl.parts.values import assignments, condition
from noetl.dsl.problems import Problems
from noetl.kernel.ids import StepName


def router(node: Node | None, step: str, problems: Problems) -> Router:
    if node is None:
        return Router()
    if isinstance(node, Scalar):
        return Router(arcs=_arcs([node], step, problems))
    if isinstance(node, Items):
        return _from_list(node, step, problems)
    fields = read(node, NEXT, problems)
    if fields is None:
        return Router()
    spec_node = fields.get("spec")
    spec = None if spec_node is None else read(spec_node, NEXT_SPEC, problems)
    mode = None if spec is None else spec.text("mode")
    no_match = None if spec is None else spec.text("on_no_match")
    return Router(
        arcs=_arcs(fields.items("arcs"), step, problems),
        mode=cast(RouteMode, mode or "exclusive"),
        on_no_match=cast(NoMatch, no_match or "complete"),
    )


def _from_list(node: Items, step: str, problems: Problems) -> Router:
    """Several steps without any condition can only mean all of them."""
    arcs = _arcs(node.nodes, step, problems)
    unguarded = all(arc.when is True for arc in arcs)
    return Router(arcs=arcs, mode="inclusive" if unguarded and len(arcs) > 1 else "exclusive")


def _arcs(nodes: list[Node], step: str, problems: Problems) -> tuple[Arc, ...]:
    made: list[Arc] = []
    for node in nodes:
        arc, target = _arc(node, problems)
        if arc is not None:
            problems.mark(("arc", step, len(made)), target)
            made.append(arc)
    return tuple(made)


def _arc(node: Node, problems: Problems) -> tuple[Arc | None, Node]:
    """The arc, and where its target is written."""
    if isinstance(node, Scalar):
        if isinstance(node.value, str) and node.value:
            return Arc(step=StepName(node.value)), node
        problems.error(node, "an arc needs the name of a step", "write the name as text")
        return None, node
    fields = read(node, ARC, problems)
    target = None if fields is None else fields.get("step")
    if fields is None or not isinstance(target, Scalar):
        return None, node
    arc = Arc(
        step=StepName(target.text),
        when=condition(fields.get("when"), problems),
        set=assignments(fields.get("set"), "ctx", problems),
        on=fields.text("on"),
    )
    return arc, target
