"""From a cursor as written to a call that its driver can run: rendered, with credentials."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from noetl.domain.playbook.loop import Cursor
from noetl.pipeline.evaluation import Source
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Job
from noetl.pipeline.sensitive import SecretsSeen
from noetl.pipeline.sight import Sight
from noetl.pipeline.workshop import Workshop
from noetl.ports.tool import ToolCall
from noetl.templates import places

CLAIM = "claim"
"""What a claim is called where tasks have names."""


class PreparedClaim(NamedTuple):
    """`secrets` are those that the call holds: rows that come back must not show them."""

    call: ToolCall
    secrets: SecretsSeen


async def prepared_claim(
    workshop: Workshop, job: Job, policy: Mapping[str, Any], worker_slot_id: str
) -> PreparedClaim:
    """The names of the step, and how large the frame may be. Raises what rendering raises."""
    loop = job.step.loop
    if loop is None or not isinstance(loop.over, Cursor):
        raise failed("client_error", f"step {job.step.name} claims no rows; give it a cursor")
    cursor, sight = loop.over, Sight(workshop, job)
    given = await sight.evaluate()(job.step.input)
    handy = {"input": given, "args": given} if given else {}

    def names() -> Any:
        seen = sight.names.base().over(given).offer(handy)
        return places.for_claim(seen, policy, worker_slot_id)

    written = {**cursor.parameters, "query": cursor.claim}
    call = ToolCall(
        kind=cursor.kind,
        task=CLAIM,
        step=job.step.name,
        execution_id=job.facts.run.execution_id,
        scope=job.scope,
        parameters=await sight.evaluation.value(written, names, reveals=True),
        credentials=await _credentials(workshop, job, sight, names),
        stage_id=job.stage_id,
        attempt=job.attempt,
    )
    return PreparedClaim(call, sight.secrets)


async def _credentials(workshop: Workshop, job: Job, sight: Sight, names: Source) -> dict[str, Any]:
    async def evaluate(value: Any) -> Any:
        return await sight.evaluation.value(value, names, reveals=True)

    opened = {}
    loop = job.step.loop
    wanted_by = loop.over.auth if loop is not None and isinstance(loop.over, Cursor) else ()
    for wanted in wanted_by:
        found = await workshop.credentials.opened(job.scope, wanted, evaluate)
        sight.secrets.add(found.secrets)
        opened[wanted.alias or ""] = found.credential
    return opened
