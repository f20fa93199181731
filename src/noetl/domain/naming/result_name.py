"""What results are called: their coordinates as a URI, wherever their bytes lie.

    noetl://<tenant>/<project>/results/<execution>/<step>/<frame>/<row>/<attempt>@<visit>
    noetl://<tenant>/<project>/results/<execution>/<step>@<visit>     the dataset of a stage

`<step>` is `step`, or `step:task`, or `step:task#run` for a run above 1, as one percent-encoded
part: `load%3Afetch%232`. A `%`, `:` or `#` within a name is escaped before they are put together
(the step `a:b` is `a%253Ab`), so a step called `a:b` is never the task `b` of the step `a`.
"""

import re

import msgspec

from noetl.domain.naming.locator import LogicalName, parse_logical
from noetl.domain.naming.segment import check_given
from noetl.kernel.errors import NameInvalid
from noetl.kernel.ids import ExecutionId, StepName
from noetl.kernel.scope import Scope

RESULTS = "results"

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_STEP = re.compile(r"(?P<step>[^:#]+)(?::(?P<task>[^:#]+)(?:#(?P<run>[1-9][0-9]{0,18}))?)?")
_STRAY = re.compile(r"%(?!25|3A|23)")


class ResultName(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The coordinates of one result. Without a task it is the result of the step."""

    tenant: str
    project: str
    execution_id: ExecutionId
    step: StepName
    task: str | None = None
    run: int = 1
    frame: int = 0  # ordinal of the frame in its stage; 0 for a single tool
    row: int = 0  # index of the row in the frame
    attempt: int = 1  # the claim number: two writers never meet
    visit: int = 1

    def __post_init__(self) -> None:
        for field in ("tenant", "project", "execution_id", "step"):
            check_given(field, getattr(self, field))
        if self.task is not None:
            check_given("task", self.task)
        elif self.run != 1:
            raise NameInvalid(f"run {self.run}", "needs the name of the task that was run")
        for field, least in _LEAST.items():
            check_number(field, getattr(self, field), least)

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant, self.project)

    @property
    def step_part(self) -> str:
        """Step, task and run as one name, not yet percent-encoded."""
        return _step_part(self.step, self.task, self.run)

    @property
    def uri(self) -> str:
        numbers = (str(self.frame), str(self.row), str(self.attempt))
        path = (self.execution_id, self.step_part, *numbers)
        return LogicalName(self.tenant, self.project, RESULTS, path, str(self.visit)).uri


class DatasetName(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All rows that a stage produced, listed by a manifest."""

    tenant: str
    project: str
    execution_id: ExecutionId
    step: StepName
    visit: int = 1

    def __post_init__(self) -> None:
        for field in ("tenant", "project", "execution_id", "step"):
            check_given(field, getattr(self, field))
        check_number("visit", self.visit, 1)

    @property
    def scope(self) -> Scope:
        return Scope(self.tenant, self.project)

    @property
    def step_part(self) -> str:
        return _step_part(self.step, None, 1)

    @property
    def uri(self) -> str:
        path = (self.execution_id, self.step_part)
        return LogicalName(self.tenant, self.project, RESULTS, path, str(self.visit)).uri


def is_result_uri(uri: str) -> bool:
    """Whether it names a result or a dataset."""
    try:
        parse_results(uri)
    except NameInvalid:
        return False
    return True


def parse_result_name(uri: str) -> ResultName:
    name = parse_results(uri)
    if not isinstance(name, ResultName):
        raise NameInvalid(repr(uri), "names the dataset of a stage, not one result")
    return name


def parse_dataset_name(uri: str) -> DatasetName:
    name = parse_results(uri)
    if not isinstance(name, DatasetName):
        raise NameInvalid(repr(uri), "names one result, not the dataset of a stage")
    return name


def parse_results(uri: str) -> ResultName | DatasetName:
    """A result or a dataset. Without its row, as results were once written, it is row 0."""
    name = parse_logical(uri)
    if name.kind != RESULTS or name.version is None:
        raise NameInvalid(repr(uri), "names no result; use noetl://<tenant>/<project>/results/…@1")
    visit = number("visit", name.version)
    match name.path:
        case (execution, step):
            return dataset_at(Scope(name.tenant, name.project), execution, step, visit)
        case (execution, step, frame, attempt):
            numbers = (frame, "0", attempt)
        case (execution, step, frame, row, attempt):
            numbers = (frame, row, attempt)
        case _:
            raise NameInvalid(repr(uri), "has other parts than execution/step/frame/row/attempt")
    return result_at(Scope(name.tenant, name.project), (execution, step), numbers, visit)


def result_at(
    scope: Scope, place: tuple[str, str], numbers: tuple[str, str, str], visit: int
) -> ResultName:
    """From execution and step part, and from frame, row and attempt as they are written."""
    execution, part = place
    step, task, run = _read_step_part(part)
    frame, row, attempt = map(number, ("frame", "row", "attempt"), numbers)
    return ResultName(
        tenant=scope.tenant_id,
        project=scope.organization_id,
        execution_id=ExecutionId(execution),
        step=step,
        task=task,
        run=run,
        frame=frame,
        row=row,
        attempt=attempt,
        visit=visit,
    )


def dataset_at(scope: Scope, execution: str, part: str, visit: int) -> DatasetName:
    step, task, _ = _read_step_part(part)
    if task is not None:
        raise NameInvalid(repr(part), "names a task; only a step has a dataset")
    return DatasetName(
        tenant=scope.tenant_id,
        project=scope.organization_id,
        execution_id=ExecutionId(execution),
        step=step,
        visit=visit,
    )


def number(field: str, text: str) -> int:
    """A number in its only spelling, so that no two names mean one thing."""
    if not _NUMBER.fullmatch(text):
        raise NameInvalid(repr(text), f"is no {field}; use a number without a leading zero")
    return int(text)


def check_number(field: str, value: int, least: int) -> None:
    if value < least or not _NUMBER.fullmatch(str(value)):
        raise NameInvalid(f"{field} {value}", f"is out of range; count from {least}")


_LEAST = {"run": 1, "frame": 0, "row": 0, "attempt": 1, "visit": 1}


def _step_part(step: str, task: str | None, run: int) -> str:
    part = _hidden(step)
    if task is not None:
        part += f":{_hidden(task)}"
    return part if run == 1 else f"{part}#{run}"


def _hidden(name: str) -> str:
    return name.replace("%", "%25").replace(":", "%3A").replace("#", "%23")


def _shown(part: str) -> str:
    if _STRAY.search(part):
        raise NameInvalid(repr(part), "has a bare %; in a step's name write it as %2525")
    return part.replace("%23", "#").replace("%3A", ":").replace("%25", "%")


def _read_step_part(part: str) -> tuple[StepName, str | None, int]:
    found = _STEP.fullmatch(part)
    if found is None:
        raise NameInvalid(repr(part), "is neither step, step:task nor step:task#run")
    task = found["task"]
    return (
        StepName(_shown(found["step"])),
        None if task is None else _shown(task),
        int(found["run"] or 1),
    )
