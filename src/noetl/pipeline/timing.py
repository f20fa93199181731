"""Where the time of a row's tasks went: into making calls ready, and into the tools."""

from dataclasses import dataclass


@dataclass(slots=True)
class TaskTime:
    """Of all tries of one task; what is neither rendering nor the tool is ours."""

    kind: str
    tries: int = 0
    seconds: float = 0.0
    render_seconds: float = 0.0  # from the task's turn until its call was ready
    tool_seconds: float = 0.0
