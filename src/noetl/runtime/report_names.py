"""Names of results in what workers report: counted by what they are, and never a reason to refuse.

A result that nobody finds under its name is the trouble of whoever reads it.
"""

from collections.abc import Iterable, Iterator

from noetl.domain.events.values import ResultReference
from noetl.domain.naming.acceptance import how_named
from noetl.domain.work import Call, FrameReport, Report
from noetl.results.counts import ResultCounts


def count_reported(counts: ResultCounts, report: Report) -> None:
    if isinstance(report, FrameReport):
        _count(counts, [report.output])
        return
    result = None if report.result is None else report.result.reference
    _count(counts, [result, *_of_calls(report.calls)])


def count_called(counts: ResultCounts, call: Call) -> None:
    _count(counts, _of_calls([call]))


def _of_calls(calls: Iterable[Call]) -> Iterator[ResultReference | None]:
    return (None if call.result is None else call.result.reference for call in calls)


def _count(counts: ResultCounts, references: Iterable[ResultReference | None]) -> None:
    for uri in {reference.uri for reference in references if reference is not None}:
        counts.accepted[how_named(uri)] += 1
