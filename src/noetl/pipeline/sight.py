"""Everything one row can see: its names, what they need fetched, and the secrets it came across."""

from typing import Any

from noetl.domain.playbook.model import KeychainEntry
from noetl.pipeline.credentials import Evaluate
from noetl.pipeline.evaluation import Evaluation
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Job
from noetl.pipeline.keychain import KeychainNames
from noetl.pipeline.names import Names
from noetl.pipeline.sensitive import SecretsSeen
from noetl.pipeline.workshop import Workshop
from noetl.ports.tool import ToolCall
from noetl.templates.errors import Need


class Sight:
    __slots__ = (
        "_job", "_keychain", "_looking", "_view", "_workshop", "evaluation", "names", "secrets",
    )  # fmt: skip

    def __init__(self, workshop: Workshop, job: Job) -> None:
        entries = job.playbook.keychain
        self._workshop = workshop
        self._job = job
        self._keychain = KeychainNames(entries) if entries else None
        self._looking: list[str] = []
        self._view = workshop.views.of(job.scope, job.playbook, job.facts)
        self.secrets = SecretsSeen()
        self.names = Names(job, self._view, self._keychain)
        self.evaluation = Evaluation(workshop, self._fetch, self._view.fetched, self.names)

    def renew(self) -> None:
        """Before a try: what has expired since it was looked up is looked up again."""
        if self._keychain is not None:
            self._keychain.drop_expired(self._workshop.clock.monotonic())

    async def _fetch(self, need: Need) -> None:
        entry = None if self._keychain is None else self._keychain.needed(need.payload)
        if entry is None:
            await self._view.fetch(need.payload, self._workshop.contents)
        else:
            await self._look_up(entry)

    async def _look_up(self, entry: KeychainEntry) -> None:
        assert self._keychain is not None
        if entry.name in self._looking:
            chain = " -> ".join([*self._looking, entry.name])
            raise failed("auth", f"the keychain entries need each other: {chain}")
        self._looking.append(entry.name)
        try:
            call = ToolCall(
                kind="http",
                task=entry.name,
                step=self._job.step.name,
                execution_id=self._job.facts.run.execution_id,
                scope=self._job.scope,
                parameters={},
            )
            looked = await self._workshop.keychain.look_up(entry, call, self.evaluate())
        finally:
            self._looking.pop()
        self.secrets.add(looked.secrets)
        self._keychain.put(entry.name, looked)

    def evaluate(self) -> Evaluate:
        """Rendering with what is visible outside of tasks, secrets in the open."""

        async def evaluated(value: Any) -> Any:
            return await self.evaluation.value(value, self.names.base, reveals=True)

        return evaluated
