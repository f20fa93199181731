"""Accept an execution: find its playbook, render its workload once, record its first event."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from noetl.decider.answers import Decided
from noetl.decider.plan import plan_of
from noetl.domain.catalog import CatalogEntry
from noetl.domain.events import PlaybookInitialized
from noetl.domain.events.envelope import Source
from noetl.kernel import canonical_json
from noetl.kernel.errors import EventInvalid, InvariantBroken, RequestInvalid, VersionConflict
from noetl.kernel.ids import ExecutionId, StageId
from noetl.kernel.scope import Scope
from noetl.runtime.coordinator import Coordinator
from noetl.runtime.running import Running
from noetl.runtime.start_keys import StartedOnce, StartKey, StartKeys
from noetl.runtime.turn import Turn
from noetl.templates.bindings import Bindings
from noetl.templates.chance import Chance
from noetl.templates.errors import TemplateError
from noetl.templates.places import Run, for_workload
from noetl.templates.render import Rendered, render
from noetl.templates.secret import masked

WORKLOAD_BYTES_MAX = 131_072


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A playbook by path or id, and what the request brings over its workload."""

    scope: Scope
    path: str | None = None
    catalog_id: str | None = None
    version: int | None = None
    payload: dict[str, Any] = {}
    execution_id: ExecutionId | None = None  # given by a parent, so that asking twice starts once
    parent_execution_id: ExecutionId | None = None
    parent_stage_id: StageId | None = None  # whose row asked for it
    start_key: str | None = None  # recorded, so that asking again after a restart finds it


class Starter:
    def __init__(
        self,
        coordinator: Coordinator,
        new_uuid: Callable[[], str],
        env: Mapping[str, str] | None = None,
        keys: StartKeys | None = None,
    ) -> None:
        self._coordinator = coordinator
        self._new_uuid = new_uuid
        self._env = dict(env or {})
        self._keys = keys

    async def start_once(self, request: StartRequest, key: StartKey) -> StartedOnce:
        """Start it, unless an execution was started under the same key within its window."""
        if self._keys is None:
            raise InvariantBroken("whoever starts by key needs the read models that know the keys")
        keyed = msgspec.structs.replace(request, start_key=key.key)
        return await self._keys.start(
            request.scope,
            key,
            lambda execution: self.start(msgspec.structs.replace(keyed, execution_id=execution)),
        )

    async def start(self, request: StartRequest) -> ExecutionId:
        """Returns once the first events are durable. An id that runs already is left alone."""
        held = self._coordinator.held
        execution = request.execution_id or ExecutionId(held.new_id())
        if request.execution_id is not None and (await held.log.head(execution)).version > 0:
            return execution
        entry = await held.playbooks.find(
            request.scope,
            path=request.path,
            version=request.version,
            catalog_id=request.catalog_id,
        )
        playbook = await held.playbooks.load(request.scope, entry.digest)
        source = Source(
            scope=request.scope,
            execution_id=execution,
            producer=held.producer,
            catalog_id=entry.catalog_id,
            parent_execution_id=request.parent_execution_id,
        )
        first = self._first_event(request, entry, execution, playbook.workload)
        running = Running(plan_of(playbook, entry.digest), source)
        self._coordinator.adopt(running)
        try:
            await self._coordinator.submit(execution, lambda turn: _begin(turn, first))
        except VersionConflict:  # somebody else started it between our look and our append
            return execution
        return execution

    def _first_event(
        self,
        request: StartRequest,
        entry: CatalogEntry,
        execution: ExecutionId,
        workload: dict[str, Any],
    ) -> PlaybookInitialized:
        job_uuid = self._new_uuid()
        run = Run(
            execution_id=execution,
            job_uuid=job_uuid,
            catalog_id=entry.catalog_id,
            path=entry.path,
            version=entry.version,
            parent_execution_id=request.parent_execution_id,
            payload=request.payload,
            env=self._env,
        )
        bindings = for_workload(run)
        moment = self._coordinator.held.clock.now()
        bindings = _at(bindings, moment, job_uuid)
        merged = {**_rendered(workload, bindings), **request.payload}
        _check_workload(merged)
        return PlaybookInitialized(
            path=entry.path,
            playbook_digest=entry.digest,
            playbook_version=entry.version,
            workload=merged,
            payload=request.payload,
            env=self._env,
            job_uuid=job_uuid,
            parent_execution_id=request.parent_execution_id,
            parent_stage_id=request.parent_stage_id,
            start_key=request.start_key,
        )


def _begin(turn: Turn, first: PlaybookInitialized) -> None:
    if turn.running.head.version == 0:
        turn.add(Decided(event=first))


def _at(bindings: Bindings, moment: Any, seed: str) -> Bindings:
    return bindings.asking(moment, Chance(seed))


def _rendered(workload: dict[str, Any], bindings: Bindings) -> dict[str, Any]:
    try:
        rendered = render(workload, bindings)
    except TemplateError as error:
        raise RequestInvalid(f"the workload cannot be rendered: {error}") from error
    if not isinstance(rendered, Rendered):
        raise RequestInvalid("the workload refers to results, and there are none yet")
    plain: dict[str, Any] = masked(rendered.value)
    return plain


def _check_workload(workload: dict[str, Any]) -> None:
    try:
        canonical_json.check_plain(workload, "workload")
    except EventInvalid as error:
        raise RequestInvalid(str(error)) from error
    size = len(msgspec.json.encode(workload))
    if size > WORKLOAD_BYTES_MAX:
        raise RequestInvalid(
            f"the workload has {size} bytes, at most {WORKLOAD_BYTES_MAX} are allowed; keep data in"
            " files or tables and pass where they are"
        )
