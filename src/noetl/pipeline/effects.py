"""Effects of one row: what an earlier holder recorded, what is in doubt, what must be recorded."""

from typing import Final

from noetl.domain.work import Call
from noetl.pipeline import staged_calls
from noetl.pipeline.cycle import Cycle
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Job, Journal
from noetl.results.store import ResultStore

FIRED: Final = "fired"
REPEATED: Final = "repeated"
ADOPTED: Final = "adopted"
IN_DOUBT: Final = "in_doubt"
AT_MOST_ONCE: Final = "at_most_once"


class Effects:
    """The first effect that is not in the journal is in doubt when there was an earlier holder:

    it would have recorded that one before it went on, so nothing after it can have been fired.
    """

    __slots__ = (
        "_found",
        "_has_begun",
        "_job",
        "_journal",
        "_recorded",
        "_store",
        "adopted",
        "fired",
        "in_doubt",
        "is_doubtful",
        "outcomes",
        "pending",
        "repeated",
    )

    def __init__(self, job: Job, journal: Journal, store: ResultStore) -> None:
        self.pending: list[Call] = []  # finished, not yet recorded
        self.fired = 0
        self.adopted: list[str] = []
        self.repeated: list[str] = []
        self.in_doubt: list[str] = []
        self.outcomes: dict[tuple[str, str], int] = {}  # what became of effects, and whose
        self.is_doubtful = job.has_predecessor
        self._found: Call | None = None  # beside its result, and in no record
        self._has_begun = False
        self._job = job
        self._journal = journal
        self._recorded = job.journal
        self._store = store

    def recorded(self, cycle: Cycle) -> Call | None:
        return self._recorded.get((cycle.plan.name, cycle.run)) if self._recorded else None

    @staticmethod
    def has_end(call: Call | None) -> bool:
        """A call that was only tried may have ended since."""
        return call is not None and (call.result is not None or call.error is not None)

    async def staged(self, cycle: Cycle) -> Call | None:
        """What an earlier holder left beside a result and recorded nowhere."""
        self._found = await staged_calls.staged(self._store, self._job, cycle.plan.name, cycle.run)
        return self._found

    async def ended(self, call: Call) -> None:
        """To be recorded before the row goes on to its next effect."""
        self.pending.append(call)
        await staged_calls.stage(self._store, self._job, call)

    async def before(self, cycle: Cycle) -> None:
        """Called when the cycle is about to fire. Raises ToolFailed when it must not."""
        if cycle.note is None:
            self._admit(cycle)
        for call in self.pending:
            await self._journal.record(call)
        self.pending.clear()
        if not self._has_begun:
            await self._journal.begin(alone=cycle.plan.effects == AT_MOST_ONCE)
            self._has_begun = True

    def fire(self, cycle: Cycle) -> None:
        """From here on the effect may have happened."""
        if cycle.note is not None:
            return
        cycle.note = REPEATED if self.is_doubtful else FIRED
        if self.is_doubtful:
            self.repeated.append(cycle.key)
        self.is_doubtful = False
        self.fired += 1
        self._count(cycle.note, cycle)

    def tried(self, cycle: Cycle, tries: int) -> None:
        """It will be tried again: whoever comes next goes on counting."""
        if cycle.note is not None:
            call = Call(task=cycle.plan.name, run=cycle.run, effect=cycle.note, tries=tries)
            self._journal.tried(call)

    def adopt(self, cycle: Cycle, call: Call) -> None:
        """A call without an effect was refused by an earlier holder, and the row went on. One that
        had run again stays one that did: whoever repeated it was lost before it could say so."""
        outcome = IN_DOUBT if call.effect is None else ADOPTED
        if call.effect == REPEATED:
            outcome = REPEATED
            self.fired += 1
        if call is self._found:  # nothing was fired after it: it would have been recorded before
            self.pending.append(call)
            self.is_doubtful = False
        lists = {IN_DOUBT: self.in_doubt, ADOPTED: self.adopted, REPEATED: self.repeated}
        lists[outcome].append(cycle.key)
        self._count(outcome, cycle)

    def _count(self, outcome: str, cycle: Cycle) -> None:
        whose = (outcome, cycle.plan.kind)
        self.outcomes[whose] = self.outcomes.get(whose, 0) + 1

    def _admit(self, cycle: Cycle) -> None:
        if not cycle.is_refused and not (self.is_doubtful and cycle.plan.effects == AT_MOST_ONCE):
            return
        if not cycle.is_refused:
            self.in_doubt.append(cycle.key)
            self._count(IN_DOUBT, cycle)
        cycle.is_refused, self.is_doubtful = True, False
        message = (
            f"an earlier worker may have run {cycle.plan.name} ({cycle.key}) before it was lost,"
            " and `effects: at_most_once` forbids to run it again; look at its target, then"
            " retry the step to run it, or cancel the execution"
        )
        raise failed("effect_in_doubt", message)
