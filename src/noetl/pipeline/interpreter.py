"""Runs a step's tasks over one row of work: for commands, for rows of frames, inside Spark."""

from collections.abc import Callable, Mapping
from typing import Any

from noetl.pipeline.boundary import Tools
from noetl.pipeline.claims import PreparedClaim, prepared_claim
from noetl.pipeline.contents import Contents
from noetl.pipeline.credentials import Credentials
from noetl.pipeline.facts_view import Asked, FactsViews
from noetl.pipeline.job import Hold, Job, Journal, RowResult
from noetl.pipeline.keychain import Keychain
from noetl.pipeline.plan import Plans
from noetl.pipeline.row import Row
from noetl.pipeline.workshop import Workshop
from noetl.ports.clock import Clock
from noetl.ports.credential_store import CredentialStore
from noetl.results.store import ResultStore
from noetl.templates.chance import Chance


class Interpreter:
    """Rows run side by side; what they share is made once. `entropy` gives a new text each time."""

    def __init__(
        self,
        tools: Tools,
        credentials: CredentialStore,
        results: ResultStore,
        clock: Clock,
        entropy: Callable[[], str],
    ) -> None:
        known = Credentials(credentials, clock)
        self._workshop = Workshop(
            tools=tools,
            credentials=known,
            keychain=Keychain(tools, known, clock),
            contents=Contents(results),
            clock=clock,
            entropy=entropy,
            plans=Plans(),
            views=FactsViews(Asked(clock.now, lambda: Chance(entropy()))),
        )

    async def run(self, job: Job, journal: Journal, hold: Hold) -> RowResult:
        """How the row ended, well or not. Raises ClaimLost, and when what is due to be recorded
        cannot be: then the row has no end, and whoever holds it next goes on from the journal.
        """
        return await Row(self._workshop, job, journal, hold).run()

    async def claim(
        self, job: Job, policy: Mapping[str, Any], worker_slot_id: str
    ) -> PreparedClaim:
        """The claim of a cursor's frame, ready for its driver. Raises what rendering raises."""
        return await prepared_claim(self._workshop, job, policy, worker_slot_id)
