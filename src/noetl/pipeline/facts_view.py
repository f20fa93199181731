"""An execution's facts as names, made once for all rows that share them."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from noetl.kernel.instant import Instant
from noetl.pipeline.contents import Contents
from noetl.pipeline.job import Job
from noetl.pipeline.payloads import references_of
from noetl.templates import places
from noetl.templates.bindings import Bindings
from noetl.templates.chance import Chance
from noetl.templates.recorded import RecordedResults

VIEWS_KEPT_MAX = 16


class Asked(NamedTuple):
    """Where templates that ask for time and chance get them: each render its own."""

    moment: Callable[[], Instant]
    chance: Callable[[], Chance]


class FactsView:
    """What `places.for_step` makes of the facts, and the payloads that were fetched for it."""

    def __init__(self, job: Job, asked: Asked) -> None:
        self.facts = job.facts
        self._asked = asked
        self.fetched: dict[str, Any] = {}
        self._scope = job.scope
        self._playbook = job.playbook
        self._step = job.step.name
        self._bindings: Bindings | None = None
        self._references = references_of(job.facts.results)

    @property
    def has_references(self) -> bool:
        return bool(self._references)

    def is_of(self, job: Job) -> bool:
        same_run = self.facts is job.facts and self._playbook is job.playbook
        return same_run and self._scope == job.scope and self._step == job.step.name

    def bindings(self) -> Bindings:
        """The same object until another payload is fetched."""
        if self._bindings is None:
            aliases = self._playbook.aliases
            known = places.Known(
                run=places.run_of(self.facts.run, self._playbook.exposed),
                workload=self.facts.workload,
                ctx=self.facts.ctx,
                steps=RecordedResults(self.facts.results, self.fetched, aliases),
                before=self._playbook.before.get(self._step),
            )
            self._bindings = places.for_step(known).asking(*self._asked)
        return self._bindings

    async def fetch(self, uri: str, contents: Contents) -> None:
        """Raises PayloadError, or ToolFailed for what templates cannot look into."""
        if uri in self.fetched:
            return
        known = self._references.get(uri)
        self.fetched[uri] = await contents.get(self._scope, uri, known)
        self._bindings = None


class FactsViews:
    """Views of the facts that are in use, found by the identity of the facts."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._kept: OrderedDict[int, FactsView] = OrderedDict()

    def of(self, job: Job) -> FactsView:
        key = id(job.facts)
        view = self._kept.get(key)
        if view is not None and view.is_of(job):
            return view
        made = self._kept[key] = FactsView(job, self._asked)
        self._kept.move_to_end(key)
        if len(self._kept) > VIEWS_KEPT_MAX:
            self._kept.popitem(last=False)
        return made
