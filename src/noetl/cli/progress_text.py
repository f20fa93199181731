"""Progress as lines of plain text, for logs and for terminals alike."""

from noetl.cli.output import count, seconds_shown, shown
from noetl.cli.progress import LoopProgress, StepProgress
from noetl.kernel.instant import Instant

MARKS = {
    "running": "…",
    "done": "✓",
    "failed": "✗",
    "handled": "!",
    "skipped": "-",
    "cancelled": "■",
}
NEWS_SECONDS = 10.0
"""How often a loop that goes on may say so where lines cannot be drawn over."""

ERROR_CHARACTERS_MAX = 80
"""A failure is told whole when the execution ends."""
_FAST = 10  # rows per second


def line_of(row: StepProgress, now: Instant) -> str:
    """`✓ load  1,000 rows, 2 failed  3.20 s`."""
    parts = [f"{MARKS[row.outcome]} {shown(row.name)}"]
    if row.loop is not None:
        parts.append(rows_of(row.loop))
    if row.outcome == "skipped":
        parts.append("skipped")
    elif row.outcome == "running":
        parts += _pace(row, now)
    else:
        parts.append(seconds_shown(row.seconds(now)))
    if row.error is not None and row.outcome in ("failed", "handled"):
        parts.append(short(row.error))
    return "  ".join(parts)


def rows_of(loop: LoopProgress) -> str:
    if loop.total is None or loop.done >= loop.total:
        text = f"{loop.done:,} rows" if loop.done != 1 else "1 row"
    else:
        text = f"{loop.done:,} of {loop.total:,} rows"
    return text + (f", {loop.failed:,} failed" if loop.failed else "")


def short(message: str) -> str:
    """The first line, cut where it would no longer be read."""
    first = shown(message.strip().partition("\n")[0])
    return first if len(first) <= ERROR_CHARACTERS_MAX else first[:ERROR_CHARACTERS_MAX] + "…"


def pace_cells(row: StepProgress, now: Instant) -> tuple[str, str, str, str]:
    """Rows per second, time left, frames in flight, engine; empty where nothing is known."""
    rate, left = row.rows_per_second(now), row.seconds_left(now)
    frames = 0 if row.loop is None else len(row.loop.frames)
    return (
        "" if rate is None else f"{_rate(rate)} rows/s",
        "" if left is None else f"{seconds_shown(left)} left",
        "" if frames == 0 else f"{count(frames, 'frame')} out",
        "" if row.loop is None else row.loop.served_by or "",
    )


def _rate(rate: float) -> str:
    """Slow rows are worth a digit more: `0.4`, not `0`."""
    return f"{rate:,.0f}" if rate >= _FAST else f"{rate:.1f}"


def _pace(row: StepProgress, now: Instant) -> list[str]:
    return [cell for cell in pace_cells(row, now) if cell]


class TextProgress:
    """Says each step once, when it is over, and now and then how far a loop is."""

    def __init__(self) -> None:
        self._said_at: dict[tuple[str, int], float] = {}

    def lines(self, rows: list[StepProgress], now: Instant) -> list[str]:
        said = []
        for row in rows:
            if row.outcome != "running":
                self._said_at.pop((row.step, row.visit), None)
                said.append(line_of(row, now))
            elif row.loop is not None and self._is_news(row, now):
                said.append(line_of(row, now))
        return said

    def _is_news(self, row: StepProgress, now: Instant) -> bool:
        seconds = row.seconds(now)
        if seconds - self._said_at.get((row.step, row.visit), 0.0) < NEWS_SECONDS:
            return False
        self._said_at[row.step, row.visit] = seconds
        return True


def summary(execution: str, status: str, events: int) -> str:
    return f"{status.lower()}: execution {execution}, {count(events, 'event')}"
