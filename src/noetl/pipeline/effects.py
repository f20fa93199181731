"""Effects of one row: what an earlier holder recorded, what is in doubt, what must be recorded."""

from typing import Final

from noetl.domain.work import Call
from noetl.pipeline.cycle import Cycle
from noetl.pipeline.failures import failed
from noetl.pipeline.job import Job, Journal

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
        "_has_begun",
        "_is_doubtful",
        "_journal",
        "_recorded",
        "adopted",
        "fired",
        "in_doubt",
        "outcomes",
        "pending",
        "repeated",
    )

    def __init__(self, job: Job, journal: Journal) -> None:
        self.pending: list[Call] = []  # finished, not yet recorded
        self.fired = 0
        self.adopted: list[str] = []
        self.repeated: list[str] = []
        self.in_doubt: list[str] = []
        self.outcomes: dict[tuple[str, str], int] = {}  # what became of effects, and whose
        self._has_begun = False
        self._journal = journal
        self._recorded = job.journal
        self._is_doubtful = job.has_predecessor

    def recorded(self, cycle: Cycle) -> Call | None:
        return self._recorded.get((cycle.plan.name, cycle.run)) if self._recorded else None

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
        cycle.note = REPEATED if self._is_doubtful else FIRED
        if self._is_doubtful:
            self.repeated.append(cycle.key)
        self._is_doubtful = False
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
        lists = {IN_DOUBT: self.in_doubt, ADOPTED: self.adopted, REPEATED: self.repeated}
        lists[outcome].append(cycle.key)
        self._count(outcome, cycle)

    def _count(self, outcome: str, cycle: Cycle) -> None:
        whose = (outcome, cycle.plan.kind)
        self.outcomes[whose] = self.outcomes.get(whose, 0) + 1

    def _admit(self, cycle: Cycle) -> None:
        if not cycle.is_refused and not (self._is_doubtful and cycle.plan.effects == AT_MOST_ONCE):
            return
        if not cycle.is_refused:
            self.in_doubt.append(cycle.key)
            self._count(IN_DOUBT, cycle)
        cycle.is_refused, self._is_doubtful = True, False
        message = (
            f"an earlier worker may have run {cycle.plan.name} ({cycle.key}) before it was lost,"
            " and `effects: at_most_once` forbids to run it again; look at its target, then"
            " retry the step to run it, or cancel the execution"
        )
        raise failed("effect_in_doubt", message)
