"""A playbook made ready for deciding: its graph, and what each join has to wait for."""

from dataclasses import dataclass

from noetl.domain.playbook.graph import Graph, graph_of
from noetl.domain.playbook.model import Playbook
from noetl.kernel.ids import StepName


@dataclass(frozen=True, slots=True)
class Plan:
    playbook: Playbook
    digest: str
    graph: Graph
    upstream: dict[StepName, frozenset[StepName]]  # of joins only

    def reference(self, step: StepName) -> str:
        """Which text a step is, wherever the playbook is kept."""
        return f"{self.digest}#{step}"


def plan_of(playbook: Playbook, digest: str) -> Plan:
    graph = graph_of(playbook)
    return Plan(playbook, digest, graph, {step: graph.upstream(step) for step in graph.joins})
