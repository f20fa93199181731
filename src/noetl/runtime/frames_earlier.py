"""What earlier holders of a frame's rows have left in its journals."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from noetl.domain.work import Call, JournalEntry
from noetl.pipeline.effects import FIRED

RowCalls = dict[tuple[str, int], Call]
"""Calls of one row by task and run."""


@dataclass(slots=True)
class Earlier:
    calls: dict[int, RowCalls] = field(default_factory=dict)  # by row
    begun: set[int] = field(default_factory=set)  # rows that may have fired what is not recorded
    ended: set[int] = field(default_factory=set)  # rows that were reported as failed

    def add(
        self, entries: list[JournalEntry], rows: Iterable[int], *, is_reported: bool = True
    ) -> None:
        """One journal, the oldest first; `rows` are those that its frame may have begun.

        Unless it was reported, nobody has heard which rows are over: whoever wrote that was lost.
        """
        is_unmarked = False
        for entry in entries:
            if entry.call is not None:
                is_unmarked = is_unmarked or not self._is_known(entry.row)
                self.calls.setdefault(entry.row, {})[entry.call.task, entry.call.run] = entry.call
            elif entry.has_ended:
                if is_reported:
                    self._end(entry.row)
            else:
                self.begun.update(range(entry.row, entry.row + entry.rows))
        if is_unmarked:  # by a build that marked no rows: any of them may have begun
            self.begun.update(rows)

    def _is_known(self, row: int) -> bool:
        return row in self.begun or row in self.ended

    def _end(self, row: int) -> None:
        """It failed and was reported: what succeeded of it is adopted, the rest is run anew.

        That some of it had run again was told by then.
        """
        self.begun.discard(row)
        self.ended.add(row)
        calls = self.calls.pop(row, {})
        self.calls[row] = {
            cycle: msgspec.structs.replace(call, effect=call.effect and FIRED)
            for cycle, call in calls.items()
            if call.error is None and call.result is not None
        }
