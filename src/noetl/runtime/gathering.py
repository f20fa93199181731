"""What a decision has to have first: payloads it looks into, items and results put away."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from noetl.decider.answers import AssembleFirst, Missing, StoreFirst
from noetl.decider.loops import error_of, loop_content
from noetl.decider.view import Closing, StoredCollection, View
from noetl.domain.events.values import Result, ResultReference
from noetl.domain.execution.state import ExecutionState, FrameOutput, LoopWork
from noetl.domain.execution.windows import in_order
from noetl.domain.naming.result_name import DatasetName, ResultName
from noetl.kernel import canonical_json
from noetl.kernel.ids import ExecutionId
from noetl.kernel.scope import Scope
from noetl.pipeline.payloads import MEDIA_TYPE, as_reference, references_of
from noetl.results.dataset import DatasetManifest, DatasetPart
from noetl.results.store import ResultStore
from noetl.templates.errors import Need
from noetl.templates.extract import cut_as_plain
from noetl.templates.recorded import LOOP
from noetl.templates.reference import Cut
from noetl.templates.render import Needs

PREVIEW_BYTES_MAX = 4_096
UNFINISHED = "unfinished"
"""What a loop that failed leaves: a retry takes it up, and only its end is the dataset."""

RETRIED = "retried"
"""What a retry makes of a loop that had ended but for some rows: the dataset's name is taken."""


class Gathering:
    def __init__(self, results: ResultStore) -> None:
        self._results = results

    async def complete(self, view: View, missing: Missing, scope: Scope) -> View:
        """The view with what was missing. Payloads never change, so asking again is safe."""
        match missing:
            case Needs(needs):
                found = await self._fetch(needs, scope, view.state)
                return replace(view, fetched={**view.fetched, **found})
            case StoreFirst(loop_id, items):
                reference = await self._store(items, scope)
                stored = StoredCollection(reference, len(items))
                return replace(view, collections={**view.collections, loop_id: stored})
            case AssembleFirst(loop_id):
                closing = await self._assemble(view.state, view.state.loop_work[loop_id], scope)
                return replace(view, closings={**view.closings, loop_id: closing})

    async def _fetch(
        self, needs: Iterable[Need], scope: Scope, state: ExecutionState
    ) -> dict[str, Any]:
        known = references_of(state.results)
        return {
            uri: await self._results.content(scope, uri, known.get(uri), lazily=True)
            for uri in sorted({need.payload for need in needs})
        }

    async def _store(self, items: list[Any], scope: Scope) -> ResultReference:
        data = collection_bytes(items)
        stored = await self._results.payloads.put(scope, data, MEDIA_TYPE)
        return msgspec.structs.replace(as_reference(stored), row_count=len(items))

    async def _assemble(self, state: ExecutionState, work: LoopWork, scope: Scope) -> Closing:
        """The dataset of the loop: the outputs of its frames stay where they are."""
        name = _name(state.execution.execution_id, work, scope)
        manifest = manifest_of(work)
        reference = await self._results.stage_dataset(name, manifest)
        content = loop_content(work, _first_values(work))
        rows = Cut(length=manifest.row_count)
        cut = Cut(within={LOOP: Cut(within={"results": rows})})
        context = {"extracted": content, "cut": cut_as_plain(cut)}
        return Closing(Result(status="ok", reference=reference, context=context), reference)


def collection_bytes(items: list[Any]) -> bytes:
    """The same for a result at hand and for one that was read back with its keys in order."""
    return canonical_json.encode(items)


def manifest_of(work: LoopWork) -> DatasetManifest:
    """Of the same outputs always the same one, so that it can be made again."""
    shell = loop_content(work, [])[LOOP]
    del shell["results"]
    return DatasetManifest(loop=shell, parts=[_part(each) for each in in_order(work)])


def _name(execution: ExecutionId, work: LoopWork, scope: Scope) -> DatasetName | ResultName:
    dataset = DatasetName(
        tenant=scope.tenant_id,
        project=scope.organization_id,
        execution_id=execution,
        step=work.step,
        visit=work.visit,
    )
    error = error_of(work)
    if error is None and not work.has_dataset:
        return dataset
    return ResultName(
        tenant=dataset.tenant,
        project=dataset.project,
        execution_id=execution,
        step=work.step,
        task=RETRIED if error is None else UNFINISHED,
        run=work.attempt,
        visit=work.visit,
    )


def _part(output: FrameOutput) -> DatasetPart:
    window, reference = output.window, output.output_ref
    outcomes = output.outcomes if reference is None else None
    return DatasetPart(first=window.first, rows=window.rows, reference=reference, outcomes=outcomes)


def _first_values(work: LoopWork) -> list[Any]:
    """The beginning of the results, as the first frame told it."""
    first = next(iter(in_order(work)), None)
    values: list[Any] = []
    size = 0
    for row in first.outcomes if first is not None else []:
        size += len(msgspec.json.encode(row.get("value")))
        if size > PREVIEW_BYTES_MAX:
            break
        values.append(row.get("value"))
    return values
