"""Why is it waiting? What a state says about an execution, in plain sentences."""

from collections.abc import Callable, Iterable, Iterator

from noetl.decider.engines import WAITS
from noetl.decider.plan import Plan
from noetl.decider.waits import is_held_by_clock
from noetl.domain.execution.rows import TERMINAL, CommandRow, FrameRow
from noetl.domain.execution.state import ExecutionState, LoopWork
from noetl.kernel.ids import EventId, StepName
from noetl.kernel.instant import Instant, seconds_between
from noetl.kernel.snowflake import minted_at

_PAUSED = "execution.paused"
NAMES_MAX = 5
"""Names in one sentence; the rest is a number."""

SHOWN_EXACTLY_BELOW = 10.0  # seconds


Lacking = Callable[[StepName], str | None]
"""Why no worker can take the work of a step, in words; None when one can."""


def explain(
    state: ExecutionState, plan: Plan, now: Instant, lacking: Lacking = lambda _: None
) -> list[str]:
    """What it does and what it waits for; never empty. Without a server nobody is lacking."""
    if state.execution.status in TERMINAL:
        return [_ended(state)]
    sentences = [
        *_paused(state),
        *_failing(state),
        *_commands(state, now, lacking),
        *_chunks(state),
        *_loops(state, now),
        *_loops_without_workers(state, lacking),
        *_children(state),
        *_tokens(state, plan),
    ]
    return sentences or [_nothing_open(state)]


def _ended(state: ExecutionState) -> str:
    row = state.execution
    after = _after(row.started_at, row.ended_at)
    if row.status == "COMPLETED":
        where = "" if state.ended_in is None else f" in step {state.ended_in}"
        return f"It completed{where}{after}."
    if row.status == "CANCELLED":
        reason = "" if row.error is None else f": {row.error}"
        return f"It was cancelled{after}{reason}."
    where = "" if state.failed is None else f" in step {state.failed.step}"
    return f"It failed{where}{after} because of {row.error_kind}: {row.error}."


def _after(started_at: Instant | None, ended_at: Instant | None) -> str:
    if started_at is None or ended_at is None:
        return ""
    return f" after {_seconds(seconds_between(started_at, ended_at))}"


def _paused(state: ExecutionState) -> Iterator[str]:
    if state.execution.status == "PAUSED":
        is_last = state.execution.last_event_type == _PAUSED and state.now is not None
        since = f" since {_time(state.now)}" if is_last and state.now is not None else ""
        resume = f"noetl executions resume {state.execution.execution_id}"
        yield f"It is paused{since}: nothing new starts until it is resumed: {resume}."


def _failing(state: ExecutionState) -> Iterator[str]:
    if state.failed is not None:
        error = state.failed.error
        yield (
            f"Step {state.failed.step} failed because of {error.kind}: {error.message}."
            " When what still runs has ended, the execution fails."
        )


def _commands(state: ExecutionState, now: Instant, lacking: Lacking) -> Iterator[str]:
    for row in state.commands.values():
        if row.claim == 0 or row.worker_id is None:
            since, why = _since(row.issued_event_id), lacking(row.step)
            wanted = "a free slot of a worker" if why is None else "a worker"
            yield f"Step {row.step} waits for {wanted}{since}{'' if why is None else f': {why}'}."
        else:
            yield _running(row, now)


def _running(row: CommandRow, now: Instant) -> str:
    if is_held_by_clock(row) and row.lease_until is not None:
        left = max(0.0, seconds_between(now, row.lease_until))
        return f"Step {row.step} waits until {_time(row.lease_until)} (in {_seconds(left)})."
    again = "" if row.claim == 1 else f", its holder number {row.claim}"
    sentence = f"Step {row.step} runs on worker {row.worker_id}{_since(row.claimed_event_id)}"
    calls = "" if row.calls == 0 else f", {_count(row.calls, 'call')} recorded"
    return f"{sentence}{again}{calls}; {_lease(row.lease_until, now)}."


def _lease(lease_until: Instant | None, now: Instant) -> str:
    if lease_until is None:
        return "it has no lease"
    left = seconds_between(now, lease_until)
    if left < 0:
        return f"its lease ran out at {_time(lease_until)}, so another worker may take it"
    return f"its lease ends at {_time(lease_until)} (in {_seconds(left)}) unless it is renewed"


def _chunks(state: ExecutionState) -> Iterator[str]:
    for step, chunks in state.chunks.items():
        if chunks.waiting:
            yield (
                f"Step {step} has {_count(len(chunks.waiting), 'chunk')} waiting: the next one is"
                " passed on when what the one before it started has ended."
            )


def _loops(state: ExecutionState, now: Instant) -> Iterator[str]:
    for loop_id, work in state.loop_work.items():
        row = state.loops.get(loop_id)
        done = 0 if row is None else row.done + row.failed
        failed = "" if row is None or row.failed == 0 else f" ({row.failed} of them failed)"
        out = [state.frames[frame] for frame in work.out if frame in state.frames]
        yield (
            f"Loop {work.step} has {done} of {_count(work.total, 'row')} done{failed};"
            f" {_frames(work, out)}."
        )
        yield from _leases(out, now)
        yield from _engine(work)


def _loops_without_workers(state: ExecutionState, lacking: Lacking) -> Iterator[str]:
    for work in state.loop_work.values():
        has_more = work.next_index < work.total or work.returned
        why = lacking(work.step) if has_more else None
        if why is not None:
            yield f"Loop {work.step} waits for a worker: {why}."


def _frames(work: LoopWork, out: list[FrameRow]) -> str:
    waiting = [frame for frame in out if frame.worker_id is None]
    held = len(out) - len(waiting)
    workers = sorted({str(frame.worker_id) for frame in out if frame.worker_id is not None})
    words = [f"{_count(held, 'frame')} out on {_names(workers)}" if held else "no frame is out"]
    if waiting:
        words.append(f"{_count(len(waiting), 'frame')} back from lost workers")
    rest = work.total - work.next_index
    if rest > 0:
        words.append(f"{_count(rest, 'row')} not handed out yet")
    return ", ".join(words)


def _leases(out: list[FrameRow], now: Instant) -> Iterator[str]:
    ends = sorted(frame.lease_until for frame in out if frame.lease_until is not None)
    late = [end for end in ends if seconds_between(now, end) < 0]
    if late:
        yield f"The lease of {_count(len(late), 'frame')} ran out, so another worker may take them."
    elif ends:
        left = _seconds(seconds_between(now, ends[0]))
        whose = "Its lease" if len(ends) == 1 else "The first of their leases"
        yield f"{whose} ends at {_time(ends[0])} (in {left}) unless it is renewed."


def _engine(work: LoopWork) -> Iterator[str]:
    """Whether the engine that a loop is for has come."""
    engine = work.policy.get("engine")
    if engine is None:
        return
    if work.job is None:
        waits = bool(work.policy.get(WAITS))
        meanwhile = "they wait for it" if waits else "local workers have them meanwhile"
        yield f"Its rows are for {engine}, which is starting; {meanwhile}."
        return
    slots, link = work.job.get("slots"), work.job.get("ui_url")
    again = "" if work.jobs == 1 else f", asked for {work.jobs} times"
    where = "" if link is None else f": {link}"
    yield f"Its rows are for {engine}, {_count(int(slots or 0), 'slot')}{again}{where}."


def _children(state: ExecutionState) -> Iterator[str]:
    for child in state.children.values():
        yield (
            f"Child execution {child.execution_id}, asked for by step {child.step},"
            " runs or has just ended."
        )


def _tokens(state: ExecutionState, plan: Plan) -> Iterator[str]:
    for name in state.tokens:
        if name not in plan.playbook.steps or state.failed is not None:
            continue
        upstream = plan.upstream.get(name, frozenset())
        awaited = [
            *(step for step in state.open_steps if step in upstream),
            *(step for step in state.tokens if step in upstream),
        ]
        if name in plan.graph.joins and awaited:
            yield f"Join {name} waits for {_names(dict.fromkeys(awaited))}."
        elif name in state.open_steps:
            yield f"Step {name} runs once more when its present visit has ended."
        else:
            yield f"Step {name} is next."


def _nothing_open(state: ExecutionState) -> str:
    if state.open_steps:
        return f"What {_names(state.open_steps)} should do is decided next, once a server runs."
    return "Nothing is open: what follows is decided next, once a server runs."


def _since(event_id: EventId | None) -> str:
    return "" if event_id is None else f" since {_time(minted_at(event_id))}"


def _time(instant: Instant) -> str:
    """To the second: nobody reads the rest."""
    return f"{instant[:19]}Z"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < SHOWN_EXACTLY_BELOW else f"{seconds:.0f} s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(names: Iterable[str]) -> str:
    given = list(names)
    shown = given[:NAMES_MAX]
    if len(given) > NAMES_MAX:
        return f"{', '.join(shown)} and {len(given) - NAMES_MAX} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
