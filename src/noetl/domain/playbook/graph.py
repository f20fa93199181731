"""The arcs of a playbook as a graph: what leads back, what meets, what is never reached.

Going depth first from the entry, arc by arc as written, an arc to a step that is still being
followed leads back; it re-runs that step. All other arcs lead forward and make no circle.
"""

from collections.abc import Iterable, Iterator

import msgspec

from noetl.domain.playbook.model import END, PARTIAL, Playbook, Step
from noetl.kernel.ids import StepName


class Edge(msgspec.Struct, frozen=True):
    """One arc: `index` is its place among the arcs of its step."""

    source: StepName
    index: int
    target: StepName


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """Only arcs between steps that exist; an arc to an implicit `end` leads out of the graph."""

    order: tuple[StepName, ...]  # reachable steps; every forward arc points to the right
    outgoing: dict[StepName, tuple[Edge, ...]]
    incoming: dict[StepName, tuple[Edge, ...]]  # forward arcs only
    back_edges: frozenset[Edge]
    joins: frozenset[StepName]
    unreachable: tuple[StepName, ...]

    def upstream(self, step: StepName) -> frozenset[StepName]:
        """Every step from which forward arcs lead here: those that a join may have to wait for."""
        found: set[StepName] = set()
        waiting = [step]
        while waiting:
            for edge in self.incoming.get(waiting.pop(), ()):
                if edge.source not in found:
                    found.add(edge.source)
                    waiting.append(edge.source)
        return frozenset(found)


def ways_in(steps: Iterable[Step]) -> dict[StepName, StepName]:
    """Of steps that one step alone leads to: that step. Where it came from needs no record."""
    sources: dict[StepName, set[StepName]] = {}
    for step in steps:
        for arc in step.next.arcs:
            sources.setdefault(arc.step, set()).add(step.name)
    return {target: next(iter(names)) for target, names in sources.items() if len(names) == 1}


def graph_of(playbook: Playbook) -> Graph:
    outgoing = {
        name: tuple(
            Edge(name, index, arc.step)
            for index, arc in enumerate(step.next.arcs)
            if arc.step in playbook.steps
        )
        for name, step in playbook.steps.items()
    }
    order, back_edges = _follow(playbook.entry, outgoing)
    reached = set(order)
    incoming: dict[StepName, list[Edge]] = {name: [] for name in order}
    for name in order:
        for edge in outgoing[name]:
            if edge not in back_edges:
                incoming[edge.target].append(edge)
    graph = Graph(
        order=order,
        outgoing=outgoing,
        incoming={name: tuple(edges) for name, edges in incoming.items()},
        back_edges=back_edges,
        joins=frozenset(),
        unreachable=tuple(name for name in playbook.steps if name not in reached),
    )
    forks = [name for name in order if playbook.steps[name].next.mode == "inclusive"]
    joins = frozenset(_joins(_without_chunks(graph, playbook), forks))
    if forks and END in reached:
        joins |= {END}  # it runs once, when all branches have come or are over
    return msgspec.structs.replace(graph, joins=joins)


def _without_chunks(graph: Graph, playbook: Playbook) -> Graph:
    """Only arcs that are taken when their step is over: chunks go one by one, and wait nowhere."""

    def kept(edges: dict[StepName, tuple[Edge, ...]]) -> dict[StepName, tuple[Edge, ...]]:
        return {name: tuple(filter(is_taken_at_the_end, each)) for name, each in edges.items()}

    def is_taken_at_the_end(edge: Edge) -> bool:
        return playbook.steps[edge.source].next.arcs[edge.index].on != PARTIAL

    return msgspec.structs.replace(
        graph, outgoing=kept(graph.outgoing), incoming=kept(graph.incoming)
    )


def _follow(
    entry: StepName, outgoing: dict[StepName, tuple[Edge, ...]]
) -> tuple[tuple[StepName, ...], frozenset[Edge]]:
    """Depth first without recursion: a playbook may be longer than Python's stack."""
    finished: list[StepName] = []
    seen = {entry}
    path = [entry]
    on_path = {entry}
    pending: list[Iterator[Edge]] = [iter(outgoing[entry])]
    back: set[Edge] = set()
    while path:
        edge = next(pending[-1], None)
        if edge is None:
            pending.pop()
            on_path.discard(path[-1])
            finished.append(path.pop())
        elif edge.target in on_path:
            back.add(edge)
        elif edge.target not in seen:
            seen.add(edge.target)
            path.append(edge.target)
            on_path.add(edge.target)
            pending.append(iter(outgoing[edge.target]))
    return tuple(reversed(finished)), frozenset(back)


def _joins(graph: Graph, forks: list[StepName]) -> Iterator[StepName]:
    """Steps where branches that run at the same time meet again."""
    rank = {name: number for number, name in enumerate(graph.order)}
    for fork in forks:
        forward = [edge for edge in graph.outgoing[fork] if edge not in graph.back_edges]
        if len(forward) > 1:
            yield from _meeting_points(graph, fork, rank)


def _meeting_points(graph: Graph, fork: StepName, rank: dict[StepName, int]) -> Iterator[StepName]:
    """Give every branch of the fork a label; where two labels meet, a new one begins.

    An exclusive choice inside a branch passes its label on, so its ends meet without waiting.
    """
    labels: dict[StepName, object] = {fork: fork}
    for name in graph.order[rank[fork] + 1 :]:
        arriving = {
            (edge.source, edge.index) if edge.source == fork else labels[edge.source]
            for edge in graph.incoming[name]
            if edge.source in labels
        }
        if len(arriving) > 1:
            labels[name] = name
            yield name
        elif arriving:
            labels[name] = arriving.pop()
