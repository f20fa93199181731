"""Steps from which no way leads to an end, whatever the conditions say."""

from collections.abc import Iterator

from noetl.domain.playbook.graph import Edge, Graph, graph_of
from noetl.domain.playbook.model import Arc, Playbook, Router
from noetl.domain.playbook.rules import Finding
from noetl.domain.playbook.wording import shown
from noetl.kernel.ids import StepName


def endless_findings(playbook: Playbook) -> Iterator[Finding]:
    """One for each way back that nothing can leave."""
    endless = _endless(playbook)
    graph = graph_of(playbook)
    for edge in sorted(graph.back_edges, key=lambda edge: _place(graph, edge)):
        if edge.source in endless and edge.target in endless:
            yield Finding(
                spot=("arc", edge.source, edge.index),
                message=f"this arc leads from step {shown(edge.source)!r} back to"
                f" {shown(edge.target)!r}, and no step in between can end: the playbook runs until"
                " it is cancelled, fails, or has entered a step NOETL_VISITS_MAX times",
                fix="give one of the arcs on the way a `when`, or let a step have none",
                severity="warning",
            )


def _endless(playbook: Playbook) -> set[StepName]:
    """What is left when all steps that may end, or lead to one that may, are taken away."""
    left = set(playbook.steps)
    while True:
        may_end = {name for name in left if _may_end(playbook.steps[name].next, left)}
        if not may_end:
            return left
        left -= may_end


def _may_end(router: Router, endless: set[StepName]) -> bool:
    """Whether a branch that is at this step may come to an end, as far as is known."""
    arcs = [arc for arc in router.arcs if arc.when is not False]
    certain = [arc for arc in arcs if _always(arc)]
    if not certain:
        return True  # no arc may be true, and then it ends here
    if router.mode == "inclusive":
        return all(arc.step not in endless for arc in certain)
    possible = arcs[: arcs.index(certain[0]) + 1]
    return any(arc.step not in endless for arc in possible)


def _always(arc: Arc) -> bool:
    return arc.when is True and arc.on is None


def _place(graph: Graph, edge: Edge) -> tuple[int, int]:
    return graph.order.index(edge.source), edge.index
