"""Progress drawn over itself on a terminal: open steps move, finished ones stay above them."""

from collections.abc import Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from noetl.cli.output import seconds_shown, shown
from noetl.cli.progress import LoopProgress, Progress, StepProgress
from noetl.cli.progress_text import MARKS, pace_cells, rows_of, short
from noetl.kernel.instant import Instant

OPEN_ROWS_MAX = 12
"""Steps that are drawn at once; a terminal is not high."""

BAR_COLUMNS_MAX = 30
BAR_COLUMNS_MIN = 8
FRAMES_PER_SECOND = 10

_MARGIN = 5  # the spinner, and a blank on both sides of what is always there
_PACE_STYLE = "cyan"
_STYLES = {
    "done": "green",
    "failed": "bold red",
    "handled": "yellow",
    "skipped": "dim",
    "cancelled": "yellow",
}


class LiveProgress:
    """`begin` and `end` bracket the drawing; rich draws in a thread of its own in between."""

    def __init__(self, progress: Progress, now: Callable[[], Instant]) -> None:
        self._progress = progress
        self._now = now
        self._spinner = Spinner("dots", style="cyan")
        self._live = Live(
            get_renderable=self._drawn,
            console=Console(stderr=True, highlight=False),
            refresh_per_second=FRAMES_PER_SECOND,
            transient=True,
        )

    def begin(self) -> None:
        self._live.start()

    def end(self) -> None:
        self._live.stop()

    def say(self, line: str) -> None:
        self._live.console.print(Text(line))

    def note(self, line: str) -> None:
        self._live.console.print(Text(f"  {line}", style="dim"))

    def show(self, rows: list[StepProgress]) -> None:
        ended = [row for row in rows if row.outcome != "running"]
        if ended:
            self._live.refresh()  # else they would be drawn once more as they were
            self._live.console.print(*[_finished(row, self._now()) for row in ended], sep="\n")

    def _drawn(self) -> RenderableType:
        now = self._now()
        rows = list(self._progress.open.values())
        drawn: list[RenderableType] = [self._row(row, now) for row in rows[:OPEN_ROWS_MAX]]
        if len(rows) > OPEN_ROWS_MAX:
            drawn.append(Text(f"  … and {len(rows) - OPEN_ROWS_MAX} more", style="dim"))
        if self._progress.status == "PAUSED":
            drawn.append(Text("  paused", style="yellow"))
        return Group(*drawn)

    def _row(self, row: StepProgress, now: Instant) -> RenderableType:
        table = Table.grid(padding=(0, 1))
        name, spent = shown(row.name), seconds_shown(row.seconds(now))
        cells: list[RenderableType] = [self._spinner, Text(name, no_wrap=True)]
        if row.loop is not None:
            rows, pace = rows_of(row.loop), [*pace_cells(row, now), spent]
            left = self._live.console.width - len(name) - len(rows) - _MARGIN
            shown_pace, bar = fitted(pace, left)
            if bar:
                cells.append(_bar(row.loop, bar))
            cells.append(Text(rows, no_wrap=True))
            cells += [Text(cell, style=_PACE_STYLE, no_wrap=True) for cell in shown_pace]
        else:
            cells.append(Text(spent, style="dim"))
        table.add_row(*cells)
        return table


def fitted(cells: list[str], columns: int) -> tuple[list[str], int]:
    """The cells that a line has room for, the first ones first, and the columns of its bar."""
    kept: list[str] = []
    left = columns
    for cell in [cell for cell in cells if cell]:
        if len(cell) + 1 > left - BAR_COLUMNS_MIN:
            break
        kept.append(cell)
        left -= len(cell) + 1
    return kept, 0 if left < BAR_COLUMNS_MIN else min(left, BAR_COLUMNS_MAX)


def _bar(loop: LoopProgress, columns: int) -> ProgressBar:
    """A loop without a total pulses."""
    return ProgressBar(
        total=loop.total, completed=loop.done, width=columns, pulse=loop.total is None
    )


def _finished(row: StepProgress, now: Instant) -> Text:
    spent = "skipped" if row.outcome == "skipped" else seconds_shown(row.seconds(now))
    return Text.assemble(
        (f"{MARKS[row.outcome]} ", _STYLES[row.outcome]),
        shown(row.name),
        "" if row.loop is None else f"  {rows_of(row.loop)}",
        (f"  {spent}", "dim"),
        "" if row.error is None else f"  {short(row.error)}",
    )
