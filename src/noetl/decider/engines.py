"""Where the rows of a stage run: decided once, when it opens, and recorded with its policy."""

from typing import Any

from noetl.decider.view import StageEngines, View
from noetl.domain.playbook.loop import Collection, Cursor, Loop
from noetl.domain.playbook.model import Playbook, Step
from noetl.templates.errors import TemplateFailed

ROWS_MIN = 1_000
"""Collections shorter than this are done before an engine is warm."""

_WAITING_KINDS = frozenset({"playbook", "wait", "spark"})
"""Rows of these wait for others, for jobs of Spark too: here they cost little, in a slot they would
hold it."""


DUCKDB = "duckdb"
WAITS = "waits_for_engine"
"""In the policy of a stage whose rows are for its engine alone, and not for local workers too."""


def engine_policy(view: View, step: Step, loop: Loop, size: int) -> dict[str, Any]:
    """What the policy of the stage says of its engine. `auto` leaves rows to local workers until
    Spark is up; whoever asks for Spark gets it.

    Raises TemplateFailed when the author asks for what cannot be had.
    """
    if not _is_for_spark(view, step, loop, size):
        return {}
    is_asked_for = "spark" in (loop.engine, view.engine)
    return {"engine": "spark"} | ({WAITS: True} if is_asked_for else {})


def _is_for_spark(view: View, step: Step, loop: Loop, size: int) -> bool:
    if loop.engine == "spark" and view.engine == "none":
        raise TemplateFailed(
            "this loop asks for `engine: spark`, and there is no Spark here; install it:"
            " pip install 'noetl[spark]', with Java 17 or newer (or 'noetl[java]')"
        )
    if loop.engine == "spark" and _uses_own_tables(step, loop):
        raise TemplateFailed(
            "this loop asks for `engine: spark`, and its DuckDB tables are the execution's own, in"
            " the home of the server; give `database:` a file that every slot reaches"
        )
    wanted = view.engine if loop.engine == "auto" else loop.engine
    if wanted in ("local", "none") or _stays_here(step, loop):
        return False
    return wanted == "spark" or not isinstance(loop.over, Collection) or _is_worth_it(loop, size)


def will_want_spark(playbook: Playbook, engines: StageEngines) -> bool:
    """Whether some task or loop is sure to ask for it, whatever its rows turn out to be."""
    if engines == "none":
        return False
    has_job = any(task.kind == "spark" for step in playbook.steps.values() for task in step.tasks)
    if has_job or engines == "local":
        return has_job
    return any(
        _is_sure(step, step.loop, engines)
        for step in playbook.steps.values()
        if step.loop is not None
    )


def _is_sure(step: Step, loop: Loop, engines: StageEngines) -> bool:
    if _stays_here(step, loop) or loop.engine == "local":
        return False
    is_asked = loop.engine == "spark" or engines == "spark"
    return is_asked or loop.mode == "fanout" or not isinstance(loop.over, Collection)


def _is_worth_it(loop: Loop, size: int) -> bool:
    return loop.mode == "fanout" or size >= ROWS_MIN


def _stays_here(step: Step, loop: Loop) -> bool:
    waits = any(task.kind in _WAITING_KINDS for task in step.tasks)
    return loop.mode == "sequential" or waits or _uses_own_tables(step, loop)


def _uses_own_tables(step: Step, loop: Loop) -> bool:
    """DuckDB without a named file: its tables lie in the home, where slots of Spark are not."""
    of_tasks = [task.parameters for task in step.tasks if task.kind == DUCKDB]
    cursor = loop.over if isinstance(loop.over, Cursor) else None
    of_cursor = [cursor.parameters] if cursor is not None and cursor.kind == DUCKDB else []
    return any(not given.get("database") for given in [*of_tasks, *of_cursor])
