"""Everything one row can see: its names, what they need fetched, and the secrets it came across."""

from noetl.domain.playbook.model import KeychainEntry
from noetl.pipeline.credentials import Evaluate
from noetl.pipeline.evaluation import Evaluation
from noetl.pipeline.facts_view import FactsView
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Job
from noetl.pipeline.keychain import KeychainNames
from noetl.pipeline.names import Names
from noetl.pipeline.sensitive import SecretsSeen
from noetl.pipeline.workshop import Workshop
from noetl.ports.tool import ToolCall
from noetl.templates.errors import Need
from noetl.templates.recorded import Fetched


class Sight:
    __slots__ = ("_keychain", "_workshop", "evaluation", "names", "secrets")

    def __init__(self, workshop: Workshop, job: Job) -> None:
        entries = job.playbook.keychain
        view = workshop.views.of(job)
        self._workshop = workshop
        self._keychain = KeychainNames(entries) if entries else None
        self.secrets = SecretsSeen()
        self.names = Names(job, view, self._keychain)
        needed = _NeededByRow(workshop, job, view, self._keychain, self.secrets)
        self.evaluation = Evaluation(workshop, needed, self.names)

    def renew(self) -> None:
        """Before a try: what has expired since it was looked up is looked up again."""
        if self._keychain is not None:
            self._keychain.drop_expired(self._workshop.clock.monotonic())

    def evaluate(self) -> Evaluate:
        """Rendering with what is visible outside of tasks, secrets in the open."""
        return self.evaluation.outside


class _NeededByRow:
    """Payloads of the facts, and entries of the keychain."""

    __slots__ = ("_job", "_keychain", "_looking", "_secrets", "_view", "_workshop")

    def __init__(
        self,
        workshop: Workshop,
        job: Job,
        view: FactsView,
        keychain: KeychainNames | None,
        secrets: SecretsSeen,
    ) -> None:
        self._workshop = workshop
        self._job = job
        self._view = view
        self._keychain = keychain
        self._secrets = secrets
        self._looking: tuple[str, ...] = ()

    @property
    def fetched(self) -> Fetched:
        return self._view.fetched

    async def fetch(self, need: Need, evaluation: Evaluation) -> None:
        entry = None if self._keychain is None else self._keychain.needed(need.payload)
        if entry is None:
            await self._view.fetch(need.payload, self._workshop.contents)
        else:
            await self._look_up(entry, evaluation)

    async def _look_up(self, entry: KeychainEntry, evaluation: Evaluation) -> None:
        assert self._keychain is not None
        if entry.name in self._looking:
            chain = " -> ".join([*self._looking, entry.name])
            raise failed("auth", f"the keychain entries need each other: {chain}")
        before, self._looking = self._looking, (*self._looking, entry.name)
        try:
            call = ToolCall(
                kind="http",
                task=entry.name,
                step=self._job.step.name,
                execution_id=self._job.facts.run.execution_id,
                scope=self._job.scope,
                parameters={},
            )
            looked = await self._workshop.keychain.look_up(entry, call, evaluation.outside)
        finally:
            self._looking = before
        self._secrets.add(looked.secrets)
        self._keychain.put(entry.name, looked)
