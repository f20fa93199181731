"""Names of an execution that stand in no event, but inside the objects that events name."""

from noetl.domain.events.envelope import RecordedEvent
from noetl.domain.events.values import ResultReference
from noetl.domain.naming.result_name import DatasetName, ResultName, is_result_uri, parse_results
from noetl.kernel.errors import NoETLError
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.results.store import ResultStore
from noetl.results.tiers import JSON_MEDIA_TYPE
from noetl.results.within import named_within
from noetl.runtime.payload_verification import payloads_named_by

NAMES_MAX = 100_000
"""Names of one execution that are held at once; with more of them nothing of it is superseded."""

Names = frozenset[ResultName | DatasetName]


class NestedNames:
    """Told the events, it follows what they name. What cannot be read might name anything."""

    def __init__(self, results: ResultStore, scope: Scope, names: Names) -> None:
        self._results = results
        self._scope = scope
        self._names: set[ResultName | DatasetName] = set(names)
        self._followed: set[ResultName | DatasetName] = set()
        self._is_known = True

    async def add(self, recorded: RecordedEvent) -> None:
        for reference in payloads_named_by(recorded):
            await self._follow(reference)

    async def all_of(self, execution: ExecutionId) -> Names | None:
        """None: not all of them can be known, so nothing may be called superseded."""
        for name in [*self._names]:
            if name.execution_id == execution and name not in self._followed:
                await self._follow_bare(name)
        return frozenset(self._names) if self._is_known else None

    async def _follow_bare(self, name: ResultName | DatasetName) -> None:
        """A name without a digest may be that of a small result, which is in its event alone."""
        key = self._results.key_of(name, JSON_MEDIA_TYPE)
        try:
            is_there = await self._results.objects.head(key) is not None
        except NoETLError:
            self._is_known = False
            return
        if is_there:
            await self._follow(ResultReference(type="object_store", uri=name.uri))

    async def _follow(self, reference: ResultReference) -> None:
        pending = [reference]
        while pending and self._is_known:
            each = pending.pop()
            if not is_result_uri(each.uri):
                continue
            name = parse_results(each.uri)
            if name in self._followed or name.scope != self._scope:
                continue
            self._followed.add(name)
            self._names.add(name)
            try:
                pending += await named_within(self._results, self._scope, each)
            except NoETLError:  # lost, damaged, or its store is away: whoever can read it knows
                self._is_known = False
            self._is_known = self._is_known and len(self._names) < NAMES_MAX
